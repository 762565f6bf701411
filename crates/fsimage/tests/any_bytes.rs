//! Runs the fuzz target of edit logs over its corpus, and over what comes of that when a few bytes change.

#[path = "../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/edits.rs"]
mod targets;

#[test]
fn edit_logs() {
    let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    let inputs = corpus::inputs(corpora, "edit_log");
    changed::check("edit_log", &inputs, targets::edit_log, 300);
}
