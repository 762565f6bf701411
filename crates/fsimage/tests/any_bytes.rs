//! Runs the fuzz target of edit logs over its corpus, and over what comes of that when a few bytes change.

#[path = "../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../fuzz/src/edits.rs"]
mod targets;

#[test]
fn edit_logs() {
    let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    changed::check(corpora, "edit_log", targets::edit_log, 300);
}
