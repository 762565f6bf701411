//! Runs the fuzz targets of whole servers over their corpora, and over what comes of these when a few bytes change, so that
//! they are checked without a fuzzer.

#[path = "../../../fuzz/src/changed.rs"]
mod changed;
#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/servers.rs"]
mod targets;

/// Where the corpora are.
const CORPORA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

fn check(name: &str, target: fn(&[u8]), changed: usize) {
    changed::check(name, &corpus::inputs(CORPORA, name), target, changed);
}

#[test]
fn calls_of_a_name_node() {
    // A request of each method of each protocol, with what most have first: a path, or nothing.
    for (protocol, method) in targets::name_node_methods() {
        for body in [&b""[..], b"\x0a\x02/a\x12\x02/a\x18\x01"] {
            targets::namenode_call(&targets::piece(protocol, method, body));
        }
    }
    check("namenode_call", targets::namenode_call, 3);
}

#[test]
fn calls_of_a_data_node() {
    check("datanode_call", targets::datanode_call, 3);
}

#[test]
fn operations_of_a_data_node() {
    check("datanode_transfer", targets::datanode_transfer, 3);
}

#[test]
fn requests_for_pages() {
    check("http_request", targets::http_request, 3);
}

#[test]
fn entries_of_the_log() {
    check("log_entry", targets::log_entry, 300);
}

#[test]
fn folders_of_a_name_node() {
    check("name_folder", targets::name_folder, 1);
}
