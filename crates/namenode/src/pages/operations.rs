//! The page `/operations`: which are under way, what each waits for, and since when.

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
