//! Who serves the tree by HTTP beside the pages.
//!
//! The NameNode knows nothing of WebHDFS: whoever starts it may give it a [`Web`], which makes calls as a client does,
//! without a connection, and asks for DataNodes to send clients to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cairn_net::Boxed;
use cairn_net::http::SharedHandler;
use cairn_net::rpc_server::LocalService;

/// What a handler of HTTP is made of.
pub struct Parts {
    /// Answers calls.
    pub service: Arc<dyn LocalService>,
    /// Where RPC is served.
    pub rpc_addr: SocketAddr,
    /// Chooses a DataNode.
    pub choose: Arc<Choose>,
}

/// Chooses a DataNode that serves HTTP for a client at an address, but none of those that are excluded: `host`, or
/// `host:port` of the data transfer; if the last is true, one that does so by TLS.
pub type Choose =
    dyn Fn(IpAddr, Vec<String>, bool) -> Boxed<'static, Option<HttpDataNode>> + Send + Sync;

/// A DataNode that serves HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpDataNode {
    /// The name that it has registered with.
    pub host_name: String,
    /// Its address.
    pub ip: String,
    /// The port of its pages.
    pub port: u16,
}

/// Makes what serves the tree.
#[derive(Clone)]
pub struct Web(Arc<dyn Fn(Parts) -> SharedHandler + Send + Sync>);

impl Web {
    /// What `make` makes.
    pub fn new(make: impl Fn(Parts) -> SharedHandler + Send + Sync + 'static) -> Web {
        Web(Arc::new(make))
    }

    pub(crate) fn of(&self, parts: Parts) -> SharedHandler {
        (self.0)(parts)
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Web")
    }
}
