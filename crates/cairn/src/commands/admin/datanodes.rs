//! What an operator asks of one DataNode, by its address.

use super::operator::Operator;
use crate::output;
use anyhow::Result;
use cairn_client::{Server, VolumeInfo};
use serde_json::json;
use std::process::ExitCode;

/// A DataNode.
#[derive(Debug, clap::Args)]
pub struct Address {
    /// HOST:PORT of its RPC (dfs.datanode.ipc.address, by default port 9867)
    #[arg(value_name = "HOST:PORT")]
    datanode: String,
}

impl Address {
    fn server(&self, operator: &Operator<'_>) -> Server {
        Server::datanode(operator.fs.config(), &self.datanode)
    }

    pub async fn evict_writers(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        self.server(operator).evict_writers().await?;
        crate::say!("Requested writer eviction to datanode {}", self.datanode);
        Ok(ExitCode::SUCCESS)
    }

    pub async fn bandwidth(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let bandwidth = self.server(operator).balancer_bandwidth().await?;
        if operator.json {
            crate::say!("{}", json!({"datanode": self.datanode, "bytes_per_second": bandwidth}));
        } else {
            crate::say!("Balancer bandwidth is {bandwidth} bytes per second.");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin datanode`.
#[derive(Debug, clap::Args)]
pub struct Show {
    #[command(flatten)]
    address: Address,
}

impl Show {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let server = self.address.server(operator);
        let info = server.datanode_info().await?;
        let volumes = server.volumes().await?;
        if operator.json {
            let volume = |volume: &VolumeInfo| {
                json!({"path": volume.path, "used": volume.used, "free": volume.free,
                       "type": volume.storage_type.map(|kind| kind.name()),
                       "reserved": volume.reserved, "blocks": volume.blocks,
                       "reserved_for_replicas": volume.reserved_for_replicas})
            };
            let volumes: Vec<_> = volumes.iter().map(volume).collect();
            crate::say!(
                "{}",
                json!({"datanode": self.address.datanode, "software": info.software,
                       "configuration": info.configuration,
                       "uptime_seconds": info.uptime_seconds, "volumes": volumes})
            );
            return Ok(ExitCode::SUCCESS);
        }
        crate::say!(
            "Uptime: {}, Software version: {}, Config version: {}",
            info.uptime_seconds,
            info.software,
            info.configuration
        );
        let mut rows = vec![
            ["volume", "type", "used", "free", "reserved", "blocks"].map(str::to_string).to_vec(),
        ];
        rows.extend(volumes.into_iter().map(|volume| {
            vec![
                volume.path,
                volume.storage_type.map_or("?", |kind| kind.name()).to_string(),
                output::size(volume.used),
                output::size(volume.free),
                output::size(volume.reserved),
                volume.blocks.to_string(),
            ]
        }));
        output::print(format_args!("{}", output::table(&rows)));
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin shutdown-datanode`.
#[derive(Debug, clap::Args)]
pub struct Shutdown {
    #[command(flatten)]
    address: Address,
    /// upgrade, if it is to be back soon and clients are to wait for it
    #[arg(value_parser = ["upgrade"])]
    why: Option<String>,
}

impl Shutdown {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        self.address.server(operator).shutdown_datanode(self.why.is_some()).await?;
        crate::say!("Submitted a shutdown request to datanode {}", self.address.datanode);
        Ok(ExitCode::SUCCESS)
    }
}

/// `cairn admin trigger-block-report`.
#[derive(Debug, clap::Args)]
pub struct TriggerReport {
    #[command(flatten)]
    address: Address,
    /// Only what is new
    #[arg(long)]
    incremental: bool,
}

impl TriggerReport {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        self.address.server(operator).trigger_block_report(self.incremental).await?;
        let kind = if self.incremental { "an incremental" } else { "a full" };
        crate::say!("Triggering {kind} block report on {}.", self.address.datanode);
        Ok(ExitCode::SUCCESS)
    }
}
