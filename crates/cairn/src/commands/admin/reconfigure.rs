//! Configurations that change while a server runs.

use super::operator::Operator;
use anyhow::Result;
use cairn_client::{DataNodeFilter, Reconfiguration, Server};
use cairn_net::date::Moment;
use serde_json::{Value, json};
use std::process::ExitCode;

/// `cairn admin reconfig`.
#[derive(Debug, clap::Args)]
pub struct Reconfig {
    /// The role of the server
    #[arg(value_parser = ["namenode", "datanode"])]
    role: String,
    /// HOST:PORT of its RPC; livenodes for all DataNodes that live
    #[arg(value_name = "HOST:PORT|livenodes")]
    server: String,
    /// Read the configuration, tell what came of it, or which properties may change
    #[arg(value_parser = ["start", "status", "properties"])]
    what: String,
}

impl Reconfig {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let mut servers = vec![self.server.clone()];
        if self.role == "datanode" && self.server == "livenodes" {
            let nodes = operator.fs.datanodes(DataNodeFilter::Live).await?;
            let address =
                |addr: cairn_client::DataNodeAddr| format!("{}:{}", addr.ip, addr.ipc_port);
            servers = nodes.into_iter().map(|node| address(node.addr)).collect();
        }
        let mut code = ExitCode::SUCCESS;
        for addr in servers {
            let config = operator.fs.config();
            let server = match self.role.as_str() {
                "datanode" => Server::datanode(config, &addr),
                _ => Server::new(config, &addr),
            };
            if let Err(error) = self.one(operator, &server).await {
                crate::complain!("cairn: {}", crate::output::sentence(&error));
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }

    async fn one(&self, operator: &Operator<'_>, server: &Server) -> Result<()> {
        let addr = server.addr();
        match self.what.as_str() {
            "start" => {
                server.start_reconfiguration().await?;
                crate::say!("Started reconfiguration task on node [{addr}].");
            }
            "status" => {
                let told = server.reconfiguration().await?;
                match operator.json {
                    true => crate::say!("{}", status_json(addr, &told)),
                    false => crate::output::print(format_args!("{}", status_text(addr, &told))),
                }
            }
            _ => {
                let properties = server.reconfigurable_properties().await?;
                if operator.json {
                    crate::say!("{}", json!({"node": addr, "properties": properties}));
                } else {
                    crate::say!("Node [{addr}] Reconfigurable properties:");
                    properties.iter().for_each(|name| crate::say!("{name}"));
                }
            }
        }
        Ok(())
    }
}

fn status_json(addr: &str, told: &Reconfiguration) -> Value {
    let changes = told.changes.iter().map(|change| {
        json!({"name": change.name, "old": change.old, "new": change.new, "error": change.error})
    });
    json!({"node": addr, "start_ms": told.start_ms, "end_ms": told.end_ms,
           "changes": changes.collect::<Vec<_>>()})
}

/// Source: Hadoop 3.5.0 `DFSAdmin#getReconfigurationStatusUtil`.
fn status_text(addr: &str, told: &Reconfiguration) -> String {
    let Some(start) = told.start_ms else {
        return format!("Reconfiguring status for node [{addr}]: no task was found.\n");
    };
    let start = Moment::of_ms(start);
    let mut text = format!("Reconfiguring status for node [{addr}]: started at {start}");
    match told.end_ms {
        None => text.push_str(" and is still running.\n"),
        Some(end) => text.push_str(&format!(" and finished at {}.\n", Moment::of_ms(end))),
    }
    for change in &told.changes {
        let outcome = if change.error.is_some() { "FAILED" } else { "SUCCESS" };
        text.push_str(&format!("{outcome}: Changed property {}\n", change.name));
        text.push_str(&format!("\tFrom: \"{}\"\n", change.old));
        text.push_str(&format!("\tTo: \"{}\"\n", change.new.as_deref().unwrap_or("<default>")));
        if let Some(error) = &change.error {
            text.push_str(&format!("\tError: {error}.\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::ConfigurationChange;

    #[test]
    fn what_came_of_a_change_is_told() {
        let mut told = Reconfiguration::default();
        assert!(status_text("dn:1", &told).contains("no task was found"));
        told.start_ms = Some(1000);
        assert!(status_text("dn:1", &told).ends_with("still running.\n"));
        told.end_ms = Some(2000);
        let (name, old) = ("a.b".to_string(), "1".to_string());
        let error = Some("is no number".to_string());
        told.changes = vec![ConfigurationChange { name, old, new: None, error }];
        assert!(status_text("dn:1", &told).ends_with(
            "FAILED: Changed property a.b\n\tFrom: \"1\"\n\tTo: \"<default>\"\n\tError: is no number.\n"
        ));
    }
}
