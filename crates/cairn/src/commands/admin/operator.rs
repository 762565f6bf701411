//! What sub-commands of `cairn admin` work with.

use crate::commands::fs::absolute;
use anyhow::Result;
use cairn_client::{FileSystem, Refresh};
use std::process::ExitCode;

/// What sub-commands work with.
pub struct Operator<'a> {
    pub fs: &'a FileSystem,
    pub json: bool,
}

impl Operator<'_> {
    pub async fn refresh(&self, what: Refresh) -> Result<ExitCode> {
        self.fs.namenode().refresh(what).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// A path as users write it.
    pub fn at(&self, path: &str) -> Result<String> {
        absolute(path, self.fs.config())
    }
}
