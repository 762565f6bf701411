//! The ports by which a NameNode serves pages and WebHDFS.

use std::net::SocketAddr;
use std::sync::Arc;

use cairn_net::http::{self, Admins, Gate, Handler, Limits, Port};
use cairn_net::tls::{Tls, TlsFiles};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::error::StartError;
use crate::config::NameNodeConfig;

/// Where pages are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WebAddrs {
    /// None where it does not serve HTTP.
    pub http: Option<SocketAddr>,
    /// None where it does not serve HTTPS.
    pub https: Option<SocketAddr>,
}

impl WebAddrs {
    /// Whether pages are served at all.
    pub fn are_some(self) -> bool {
        self.http.is_some() || self.https.is_some()
    }
}

/// The ports, open.
pub(crate) struct WebPorts {
    ports: Vec<Port>,
    addrs: WebAddrs,
}

impl WebPorts {
    /// Opens those that are configured.
    pub async fn open(config: &NameNodeConfig) -> Result<WebPorts, StartError> {
        let http = match config.http_addr {
            Some(addr) => Some(Port::from(bind(addr, "HTTP").await?)),
            None => None,
        };
        let https = match &config.https {
            Some((addr, files)) => Some(secure_port(*addr, files).await?),
            None => None,
        };
        let addr = |port: &Option<Port>| port.as_ref().and_then(|p| p.listener.local_addr().ok());
        let addrs = WebAddrs { http: addr(&http), https: addr(&https) };
        Ok(WebPorts { ports: http.into_iter().chain(https).collect(), addrs })
    }

    /// None is open here: the process around this NameNode has them, at these addresses.
    pub fn elsewhere(addrs: WebAddrs) -> WebPorts {
        WebPorts { ports: Vec::new(), addrs }
    }

    /// Where they are.
    pub fn addrs(&self) -> WebAddrs {
        self.addrs
    }

    /// Serves `site`, which `admins` administer, by all of them until what `until` makes completes, to those who have shown
    /// who they are where that is wanted.
    pub fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        (site, admins): (Arc<dyn Handler>, Admins),
        config: &NameNodeConfig,
        until: impl Fn() -> F,
        tasks: &mut JoinSet<()>,
    ) {
        let site: Arc<dyn Handler> = match &config.http_auth {
            Some(auth) => Arc::new(Gate::new(auth.clone(), site).with_admins(admins)),
            None => site,
        };
        let (idle, reach) = (config.http_idle_timeout, config.reach.clone());
        let limits = Limits { idle, reach, ..Limits::default() };
        for port in self.ports {
            let (site, limits) = (Arc::clone(&site), limits.clone());
            tasks.spawn(http::serve(port, site, limits, until()));
        }
    }
}

async fn bind(addr: SocketAddr, purpose: &'static str) -> Result<TcpListener, StartError> {
    let bound = TcpListener::bind(addr).await;
    bound.map_err(|source| StartError::Bind { addr, purpose, source })
}

/// A port for HTTPS.
async fn secure_port(addr: SocketAddr, files: &TlsFiles) -> Result<Port, StartError> {
    let files = files.clone();
    let opened = tokio::task::spawn_blocking(move || Tls::open(files)).await;
    let tls = opened.map_err(|_| StartError::Interrupted)?.map_err(StartError::Certificate)?;
    Ok(Port { listener: bind(addr, "HTTPS").await?, tls: Some(tls) })
}
