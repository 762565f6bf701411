//! What a NameNode serves by HTTP.

use std::sync::Arc;

use cairn_net::http::{Handler, Request, SharedHandler, Site, WEBHDFS};
use cairn_net::page::live::{self, Live};

use crate::backups::{self, Backups};
use crate::http_nodes;
use crate::images::{self, Images};
use crate::node::NameNode;
use crate::pages::{self, FILES, Files, Pages};
use crate::protocol::Protocols;
use crate::web::{self, Choose};

/// All of it, and what the pages draw on.
pub(super) fn site(
    node: &Arc<NameNode>,
    service: &Arc<Protocols>,
) -> (Arc<dyn Handler>, Arc<Pages>) {
    let web = node.config.web.as_ref();
    let web = web.map(|web| web.of(web_parts(node, Arc::clone(service))));
    let made = Arc::new(Pages::new(Arc::clone(node)));
    let (for_page, for_live) = (Arc::clone(&made), Arc::clone(&made));
    let page = move |request: &Request| pages::page(&for_page, request);
    let live = Live::new(move |request| pages::live(&for_live, request));
    let files = Files::new(Arc::clone(&made), Arc::clone(service));
    let shared = |handler: Arc<dyn Handler>| Some(SharedHandler(handler));
    let site = Site::new(page)
        .with(WEBHDFS, web)
        .with(live::PATH, shared(Arc::new(live)))
        .with(FILES, shared(Arc::new(files)))
        .with(backups::PATH, shared(Arc::new(Backups::new(Arc::clone(node)))))
        .with(images::PATH, shared(Arc::new(Images::new(Arc::clone(node)))));
    (Arc::new(site), made)
}

/// What serves the tree by HTTP is made of these.
fn web_parts(node: &Arc<NameNode>, service: Arc<Protocols>) -> web::Parts {
    web::Parts { service, rpc_addr: node.rpc_addr, choose: chooser(node) }
}

/// Chooses of a NameNode's DataNodes.
pub(crate) fn chooser(node: &Arc<NameNode>) -> Arc<Choose> {
    let node = Arc::clone(node);
    Arc::new(move |client, excluded, by_tls| {
        let node = Arc::clone(&node);
        Box::pin(async move { http_nodes::choose(&node, client, &excluded, by_tls) })
    })
}
