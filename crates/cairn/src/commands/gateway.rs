//! `cairn gateway`: WebHDFS at one address, until told to stop.

use crate::service::ServiceManager;
use crate::{Settings, config, output};
use anyhow::{Context, Result};
use cairn_net::http::{self, Gate, Handler, Limits, Port, Response, Site, WEBHDFS};
use cairn_net::tls::Tls;
use serde_json::json;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Flags of `cairn gateway`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen (default: httpfs.http.hostname and httpfs.http.port, or all addresses and port 14000)
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,
}

/// Runs the gateway; prints one JSON line when it serves.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let conf = settings.configuration()?;
    let gateway = config::gateway::read(&conf)?;
    let tls = gateway.tls.map(Tls::open).transpose()?;
    let mut limits = Limits::default();
    conf.millis("hadoop.http.idle_timeout.ms", &mut limits.idle)?;
    let addr = match args.listen {
        Some(addr) => addr,
        None => config::value::address(&gateway.listen)?,
    };
    let listener = TcpListener::bind(addr).await;
    let listener = listener.with_context(|| format!("cannot listen on {addr}"))?;
    let line = json!({
        "role": "gateway",
        "http": format!("{}://{}", if tls.is_some() { "https" } else { "http" }, listener.local_addr()?),
        "pid": std::process::id(),
    });
    crate::say!("{line}");
    let nothing = |_: &http::Request| Response::error(404, "see /webhdfs/v1").into();
    let site: Arc<dyn Handler> = Arc::new(Site::new(nothing).with(WEBHDFS, Some(gateway.handler)));
    let site = match gateway.auth {
        Some(auth) => Arc::new(Gate::new(auth, site)),
        None => site,
    };
    let manager = ServiceManager::of_environment();
    manager.ready(&format!("serves WebHDFS at {addr}"));
    tokio::select! {
        told = output::told_to_stop() => { told?; }
        () = http::serve(Port { listener, tls }, site, limits, std::future::pending()) => {}
        () = manager.watch(|| ()) => {}
    }
    manager.stopping();
    Ok(ExitCode::SUCCESS)
}
