//! What a DataNode's HTTP port says.

use crate::node::Node;
use cairn_net::http::{Answer, Request, Response};
use std::sync::Arc;

const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to a request.
///
/// Source: Hadoop 3.5.0 `DatanodeHttpServer`, of whose pages only the block scanner's is here.
pub(crate) fn page(node: &Arc<Node>, request: &Request) -> Answer {
    let response = match request.path.as_str() {
        "/" => {
            Response::ok(TEXT, format!("DataNode {}\n/blockScannerReport\n", node.dataset.uuid()))
        }
        "/blockScannerReport" => Response::ok(TEXT, node.scanner.report(node)),
        _ => Response::error(404, "no such page"),
    };
    response.into()
}
