//! Limits of directories.

use super::operator::Operator;
use anyhow::{Result, bail};
use cairn_client::{QuotaChange, StorageType};
use cairn_conf::value;
use std::process::ExitCode;

/// `cairn admin set-quota`.
#[derive(Debug, clap::Args)]
pub struct SetQuota {
    /// Most names: a number, or one with k, m, g, t, p or e behind it
    quota: String,
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// `cairn admin set-space-quota`.
#[derive(Debug, clap::Args)]
pub struct SetSpaceQuota {
    /// Most bytes on disk, redundancy included: a number, or one with k, m, g, t, p or e behind it
    quota: String,
    /// Only on storage of this type
    #[arg(long, value_name = "TYPE")]
    storage_type: Option<String>,
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// `cairn admin clear-quota`.
#[derive(Debug, clap::Args)]
pub struct ClearQuota {
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// `cairn admin clear-space-quota`.
#[derive(Debug, clap::Args)]
pub struct ClearSpaceQuota {
    /// Only on storage of this type
    #[arg(long, value_name = "TYPE")]
    storage_type: Option<String>,
    /// The directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl SetQuota {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        names(operator, &self.paths, QuotaChange::Set(value::bytes(&self.quota)?)).await
    }
}

impl ClearQuota {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        names(operator, &self.paths, QuotaChange::Clear).await
    }
}

impl SetSpaceQuota {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let change = QuotaChange::Set(value::bytes(&self.quota)?);
        space(operator, &self.paths, change, self.storage_type.as_deref()).await
    }
}

impl ClearSpaceQuota {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        space(operator, &self.paths, QuotaChange::Clear, self.storage_type.as_deref()).await
    }
}

async fn names(operator: &Operator<'_>, paths: &[String], change: QuotaChange) -> Result<ExitCode> {
    for path in paths {
        operator.fs.set_name_quota(&operator.at(path)?, change).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn space(
    operator: &Operator<'_>,
    paths: &[String],
    change: QuotaChange,
    storage_type: Option<&str>,
) -> Result<ExitCode> {
    let storage_type = match storage_type {
        None => None,
        Some(name) => match StorageType::parse(name) {
            None => bail!(
                "{name} is no type of storage: {}",
                StorageType::ALL.map(StorageType::name).join(", ")
            ),
            found => found,
        },
    };
    for path in paths {
        operator.fs.set_space_quota(&operator.at(path)?, change, storage_type).await?;
    }
    Ok(ExitCode::SUCCESS)
}
