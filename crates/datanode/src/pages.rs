//! What a DataNode's HTTP port says: pages for people (`site`), `/jmx`, `/conf`, `/prom`, `/stacks` and `/health` for
//! monitors, `/logLevel`, and `/blockScannerReport`.
//!
//! No page holds a lock that readers or writers of blocks want for longer than a look-up.
//!
//! Source: Hadoop 3.5.0 `DatanodeHttpServer`.

mod health;
mod jmx;
mod prom;
mod site;
mod volumes;

use std::sync::Arc;

use cairn_access::groups::GroupsConfig;
use cairn_keys::defaults;
use cairn_net::http::{Answer, Request, Response};
use cairn_net::monitoring::{self, process};
use cairn_net::page::{self, Page};

use crate::config::DataNodeConfig;
use crate::node::Node;
use health::Health;

const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to a request.
pub(crate) fn page(node: &Arc<Node>, request: &Request) -> Answer {
    let made = page::file(&request.path);
    let made = made.or_else(|| Some(site::page(node, request)?.answer(request)));
    made.unwrap_or_else(|| for_programs(node, request)).into()
}

/// The page for people that a request is about, to be looked at again and again.
pub(crate) fn live(node: &Node, request: &Request) -> Option<Page> {
    site::page(node, request)
}

fn for_programs(node: &Arc<Node>, request: &Request) -> Response {
    match request.path.as_str() {
        "/jmx" => jmx::page(node, request),
        "/conf" => {
            let keys = [defaults(DataNodeConfig::KEYS), defaults(GroupsConfig::KEYS)].concat();
            monitoring::conf(&node.config.properties, &keys)
        }
        "/prom" => prom::page(node),
        "/health" => Health::of(node).page(),
        "/stacks" => process::stacks("This is a DataNode"),
        "/logLevel" => process::log_level(request),
        "/blockScannerReport" => Response::ok(TEXT, node.scanner.report(node)),
        _ => Response::error(404, "no such page"),
    }
}
