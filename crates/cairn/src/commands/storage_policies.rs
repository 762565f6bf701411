//! `cairn storagepolicies`: on which types of storage files are.
//!
//! Source: Hadoop 3.5.0 `StoragePolicyAdmin`.

use super::fs::absolute;
use crate::{Settings, config};
use anyhow::{Result, bail};
use cairn_client::{FileSystem, StoragePolicyInfo, StorageType};
use clap::Subcommand;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Flags of `cairn storagepolicies`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: PolicyCommand,
}

/// A file or directory.
#[derive(Debug, clap::Args)]
struct OnePath {
    /// The file or directory
    #[arg(long, value_name = "PATH")]
    path: String,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// List all storage policies
    #[command(alias = "listPolicies")]
    List,
    /// Show the policy in force for a path
    #[command(alias = "getStoragePolicy")]
    Get(OnePath),
    /// Give a path a policy
    #[command(alias = "setStoragePolicy")]
    Set {
        #[command(flatten)]
        path: OnePath,
        /// Its name
        #[arg(long, value_name = "NAME")]
        policy: String,
    },
    /// Take the policy off a path, so that the one above it counts
    #[command(alias = "unsetStoragePolicy")]
    Unset(OnePath),
    /// Ask for a path to be brought to the storage types of its policy
    #[command(alias = "satisfyStoragePolicy")]
    Satisfy(OnePath),
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let at = |path: &OnePath| absolute(&path.path, fs.config());
    match args.command {
        PolicyCommand::List => {
            let policies = fs.storage_policies().await?;
            if !settings.json {
                crate::say!("Block Storage Policies:");
            }
            for policy in policies {
                match settings.json {
                    true => crate::say!("{}", as_json(&policy)),
                    false => crate::say!("\t{}", as_text(&policy)),
                }
            }
        }
        PolicyCommand::Get(path) => {
            let path = at(&path)?;
            if fs.require(&path).await?.storage_policy == 0 && !settings.json {
                crate::say!("The storage policy of {path} is unspecified");
                return Ok(ExitCode::SUCCESS);
            }
            let policy = fs.storage_policy(&path).await?;
            if settings.json {
                crate::say!("{}", as_json(&policy));
            } else {
                crate::say!("The storage policy of {path}:\n{}", as_text(&policy));
            }
        }
        PolicyCommand::Set { path, policy } => {
            let path = at(&path)?;
            if !fs.storage_policies().await?.iter().any(|known| known.name == policy) {
                bail!("{policy}: no storage policy has that name; cairn storagepolicies list");
            }
            fs.set_storage_policy(&path, &policy).await?;
            crate::say!("Set storage policy {policy} on {path}");
        }
        PolicyCommand::Unset(path) => {
            let path = at(&path)?;
            fs.unset_storage_policy(&path).await?;
            crate::say!("Unset storage policy from {path}");
        }
        PolicyCommand::Satisfy(path) => {
            let path = at(&path)?;
            fs.satisfy_storage_policy(&path).await?;
            crate::say!("Scheduled blocks to move based on the current storage policy on {path}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn names(types: &[StorageType]) -> Vec<&'static str> {
    types.iter().map(|kind| kind.name()).collect()
}

fn as_json(policy: &StoragePolicyInfo) -> Value {
    json!({
        "id": policy.id, "name": policy.name,
        "storage_types": names(&policy.storage_types),
        "creation_fallbacks": names(&policy.creation_fallbacks),
        "replication_fallbacks": names(&policy.replication_fallbacks),
    })
}

/// Source: Hadoop 3.5.0 `BlockStoragePolicy#toString`.
fn as_text(policy: &StoragePolicyInfo) -> String {
    let list = |types: &[StorageType]| format!("[{}]", names(types).join(", "));
    format!(
        "BlockStoragePolicy{{{}:{}, storageTypes={}, creationFallbacks={}, replicationFallbacks={}}}",
        policy.name,
        policy.id,
        list(&policy.storage_types),
        list(&policy.creation_fallbacks),
        list(&policy.replication_fallbacks)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_like_hadoops() {
        let policy = StoragePolicyInfo {
            id: 15,
            name: "LAZY_PERSIST".into(),
            storage_types: vec![StorageType::RamDisk, StorageType::Disk],
            creation_fallbacks: vec![StorageType::Disk],
            replication_fallbacks: vec![],
        };
        assert_eq!(
            as_text(&policy),
            "BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], \
             creationFallbacks=[DISK], replicationFallbacks=[]}"
        );
    }
}
