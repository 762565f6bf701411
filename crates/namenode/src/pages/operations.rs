//! The page `/operations`: which are under way, what each waits for, and since when.

use std::fmt::Write as _;

use crate::node::NameNode;
use crate::operations::{MOST, Shown};
use serde_json::{Value, json};

/// Operations that are told of, those that were begun first.
const SHOWN_MAX: usize = 1000;

/// What the page says.
pub(super) fn page(node: &NameNode) -> String {
    let (count, first) = node.operations.shown(SHOWN_MAX);
    let row = |shown: &Shown| {
        json!({
            "operation": shown.name,
            "ageMs": shown.age.as_millis() as u64,
            "waitsFor": shown.waits_for.word(),
            "waitsMs": shown.waits_for.word().map(|_| shown.waits.as_millis() as u64),
        })
    };
    let operations: Vec<Value> = first.iter().map(row).collect();
    json!({ "count": count, "most": MOST, "operations": operations }).to_string()
}

/// The same for people.
pub(super) fn text(node: &NameNode) -> String {
    let (count, first) = node.operations.shown(SHOWN_MAX);
    let mut out = format!("{count} operations are under way");
    for shown in first {
        let waits = shown.waits_for.word().unwrap_or("nothing");
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "\n{:<24} for {:.3} s, waits for {waits}",
            shown.name,
            shown.age.as_secs_f64()
        );
    }
    out.push('\n');
    out
}
