//! Snapshots of directories.

use super::shell::Shell;
use anyhow::Result;
use serde_json::json;

/// `cairn fs create-snapshot`.
#[derive(Debug, clap::Args)]
pub struct CreateSnapshot {
    /// The directory, which must be snapshottable
    path: String,
    /// The snapshot's name (default: one with the time)
    name: Option<String>,
}

impl CreateSnapshot {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let path = shell.at(&self.path)?;
        let made = shell.fs.create_snapshot(&path, self.name.as_deref()).await?;
        if shell.json {
            crate::say!("{}", json!({"path": path, "snapshot": made}));
        } else {
            crate::say!("Created snapshot {made}");
        }
        Ok(())
    }
}

/// `cairn fs delete-snapshot`.
#[derive(Debug, clap::Args)]
pub struct DeleteSnapshot {
    /// The directory
    path: String,
    /// The snapshot's name
    name: String,
}

impl DeleteSnapshot {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let path = shell.at(&self.path)?;
        shell.fs.delete_snapshot(&path, &self.name).await?;
        let authority = &shell.fs.config().namenode;
        let name = &self.name;
        shell.tell_hadoop(format_args!("Deleted snapshot {name} under hdfs://{authority}{path}"));
        Ok(())
    }
}

/// `cairn fs rename-snapshot`.
#[derive(Debug, clap::Args)]
pub struct RenameSnapshot {
    /// The directory
    path: String,
    /// The snapshot's name
    old: String,
    /// Its new name
    new: String,
}

impl RenameSnapshot {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let path = shell.at(&self.path)?;
        shell.fs.rename_snapshot(&path, &self.old, &self.new).await?;
        let authority = &shell.fs.config().namenode;
        let RenameSnapshot { old, new, .. } = &self;
        shell.tell_hadoop(format_args!(
            "Renamed snapshot {old} to {new} under hdfs://{authority}{path}"
        ));
        Ok(())
    }
}
