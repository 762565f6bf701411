//! What a member that follows tells of itself, for those who watch members rather than the cluster.

use crate::clock::wall_ms;
use crate::config::NameNodeConfig;
use crate::members;
use crate::pages::activity;
use crate::replica::front::Front;
use crate::standing::Standing;
use cairn_net::http::{Request, Response};
use cairn_net::monitoring::{self, JSON, Metrics, calls, process};
use cairn_net::page;
use cairn_net::rpc_server::RpcMetrics;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// The pages that mean one member.
const PATHS: [&str; 8] =
    ["/conf", "/health", "/isActive", "/jmx", "/logLevel", "/prom", "/stacks", "/startupProgress"];

/// See the module.
pub(super) struct Own {
    front: Arc<Front>,
    properties: Vec<(String, String)>,
    rpc_addr: SocketAddr,
    rpc_metrics: Arc<RpcMetrics>,
    /// Whether clients are to show who they are.
    is_secure: bool,
    started_ms: u64,
}

impl Own {
    /// Of a member that has just started.
    pub fn new(
        config: &NameNodeConfig,
        front: Arc<Front>,
        rpc_addr: SocketAddr,
        rpc_metrics: Arc<RpcMetrics>,
    ) -> Own {
        let properties = config.properties.clone();
        let is_secure = config.security.is_some();
        Own { front, properties, rpc_addr, rpc_metrics, is_secure, started_ms: wall_ms() }
    }

    /// Whether a page is made here.
    pub fn has(&self, path: &str) -> bool {
        PATHS.contains(&path) || page::file(path).is_some()
    }

    /// Makes one.
    pub fn page(&self, request: &Request) -> Response {
        match request.path.as_str() {
            "/conf" => monitoring::conf(&self.properties, &NameNodeConfig::defaults()),
            "/health" => self.health(),
            "/isActive" => not_active(),
            "/jmx" => self.jmx(request),
            "/logLevel" => process::log_level(request),
            "/prom" => self.prom(),
            "/stacks" => process::stacks("this NameNode follows"),
            "/startupProgress" => self.startup_progress(),
            path => page::file(path).unwrap_or_else(|| Response::error(404, "not found")),
        }
    }

    /// Healthy means that calls are answered by whoever leads: 200 then.
    fn health(&self) -> Response {
        let mut told = json!({"status": "ok", "role": "follower"});
        match self.front.ready() {
            Ok(()) => told["ready"] = true.into(),
            Err(why) => {
                told["ready"] = false.into();
                told["reason"] = why.into();
            }
        }
        match self.front.standing() {
            Standing::Follows { leader, .. } => {
                told["leader"] = leader.name.into();
                Response::ok(JSON, told.to_string())
            }
            _ => {
                told["status"] = "no leader".into();
                Response::new(503, JSON, told.to_string())
            }
        }
    }

    /// Source: Hadoop 3.5.0 `NameNodeMXBean`, `NameNodeStatusMXBean`, `FSNamesystem#getHAState`.
    fn jmx(&self, request: &Request) -> Response {
        let version = env!("CARGO_PKG_VERSION");
        let mut info = json!({
            "name": "Hadoop:service=NameNode,name=NameNodeInfo",
            "modelerType": "cairn.NameNode",
            "Version": format!("{version}, cairn"),
            "SoftwareVersion": version,
            "NNStartedTimeInMillis": self.started_ms,
        });
        if let Some(identity) = self.front.identity() {
            info["BlockPoolId"] = identity.block_pool_id.into();
            info["ClusterId"] = identity.cluster_id.into();
        }
        let status = json!({
            "name": "Hadoop:service=NameNode,name=NameNodeStatus",
            "modelerType": "cairn.NameNode",
            "NNRole": "NameNode",
            "HostAndPort": self.rpc_addr.to_string(),
            "SecurityEnabled": self.is_secure,
            "State": "standby",
            "LastHATransitionTime": 0,
        });
        let state = json!({
            "name": "Hadoop:service=NameNode,name=FSNamesystem",
            "modelerType": "FSNamesystem",
            "tag.HAState": "standby",
            "tag.Hostname": self.rpc_addr.ip().to_string(),
        });
        let mut beans: Vec<Value> = vec![info, status, state, activity::bean(&self.rpc_metrics)];
        beans.extend(calls::beans(&self.rpc_metrics, "NameNode", self.rpc_addr.port()));
        monitoring::jmx(beans, request)
    }

    fn prom(&self) -> Response {
        let mut metrics = Metrics::of("cairn_namenode");
        let (status, rows) = self.front.members();
        members::figures(&status, &rows, &mut metrics);
        let known = self.front.completeness();
        let help = "DataNodes that a member that follows hears of";
        metrics.gauge("standby_datanodes", help, known.nodes);
        let help = "Those of them that have told it all they have";
        metrics.gauge("standby_reported_datanodes", help, known.reported);
        let help = "Replicas and units of which a member that follows was told";
        metrics.gauge("standby_replicas", help, known.replicas);
        let help = "Reads that this member has answered since its start while another one led";
        metrics.counter("follower_reads_total", help, &[], self.front.reads().answered());
        calls::figures(&self.rpc_metrics, &mut metrics);
        metrics.page()
    }

    /// Log and store are open; what is awaited is told by `/health`.
    ///
    /// Source: Hadoop 3.5.0 `StartupProgressServlet`.
    fn startup_progress(&self) -> Response {
        let elapsed = wall_ms().saturating_sub(self.started_ms);
        let is_over = self.front.ready().is_ok();
        let part = if is_over { 1.0 } else { 0.0 };
        let body = json!({"elapsedTime": elapsed, "percentComplete": part, "phases": []});
        Response::ok(JSON, body.to_string())
    }
}

/// Source: Hadoop 3.5.0 `IsActiveServlet`.
fn not_active() -> Response {
    Response::error(405, "I am not Active!")
}
