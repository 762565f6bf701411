//! Upgrades.

use super::operator::Operator;
use anyhow::Result;
use cairn_client::{RollingUpgrade, RollingUpgradeAction};
use cairn_net::date::Moment;
use serde_json::json;
use std::process::ExitCode;

/// `cairn admin rolling-upgrade`.
#[derive(Debug, clap::Args)]
pub struct Rolling {
    /// What to do
    #[arg(value_enum, default_value = "query")]
    what: RollingWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RollingWord {
    /// Tell of it
    Query,
    /// Keep a copy of the namespace to go back to; the NameNode must be in safe mode
    Prepare,
    /// Give that up
    Finalize,
}

impl Rolling {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let action = match self.what {
            RollingWord::Query => RollingUpgradeAction::Query,
            RollingWord::Prepare => RollingUpgradeAction::Prepare,
            RollingWord::Finalize => RollingUpgradeAction::Finalize,
        };
        let told = operator.fs.rolling_upgrade(action).await?;
        if operator.json {
            let value = told.as_ref().map(|upgrade| {
                json!({"pool": upgrade.pool, "start_ms": upgrade.start_ms,
                       "finalize_ms": upgrade.finalize_ms, "has_rollback": upgrade.has_rollback})
            });
            crate::say!("{}", json!({"rolling_upgrade": value}));
            return Ok(ExitCode::SUCCESS);
        }
        crate::say!("{}", text(told.as_ref()));
        Ok(ExitCode::SUCCESS)
    }
}

fn text(upgrade: Option<&RollingUpgrade>) -> String {
    match upgrade {
        None => {
            "There is no rolling upgrade in progress or rolling upgrade has already been finalized."
                .to_string()
        }
        Some(RollingUpgrade { finalize_ms: Some(ms), .. }) => {
            format!("The rolling upgrade was finalized at {}", Moment::of_ms(*ms))
        }
        Some(RollingUpgrade { start_ms, has_rollback, .. }) => {
            let copy = if *has_rollback { "is there" } else { "is being made" };
            let since = Moment::of_ms(*start_ms);
            format!("A rolling upgrade lasts since {since}; what is needed to go back {copy}")
        }
    }
}

/// `cairn admin upgrade`.
#[derive(Debug, clap::Args)]
pub struct Upgrade {
    /// What to do
    #[arg(value_parser = ["query", "finalize"])]
    what: String,
}

impl Upgrade {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        if self.what == "finalize" {
            return finalize(operator).await;
        }
        let is_finalized = operator.fs.is_upgrade_finalized().await?;
        if operator.json {
            crate::say!("{}", json!({"finalized": is_finalized}));
        } else {
            let told = if is_finalized {
                "Upgrade finalized"
            } else {
                "Upgrade in progress. Upgrade needs to be finalized."
            };
            crate::say!("{told}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub async fn finalize(operator: &Operator<'_>) -> Result<ExitCode> {
    operator.fs.finalize_upgrade().await?;
    crate::say!("Finalize upgrade successful");
    Ok(ExitCode::SUCCESS)
}

/// `cairn admin restored`.
#[derive(Debug, clap::Args)]
pub struct Restored {
    /// Have replicas deleted again that the restored namespace does not know; what was written since the backup is lost
    #[arg(long)]
    accept: bool,
}

impl Restored {
    pub async fn run(&self, operator: &Operator<'_>) -> Result<ExitCode> {
        let restored = operator.fs.restored_namespace(self.accept).await?;
        if operator.json {
            let value = restored.map(|it| {
                json!({"entry": it.sequence, "entry_ms": it.entry_ms,
                       "restored_ms": it.restored_ms, "accepted": self.accept,
                       "unread_parities": it.unread_parities, "found_groups": it.found_groups,
                       "adopted_groups": it.adopted_groups, "refused_groups": it.refused_groups,
                       "unread_containers": it.unread_containers,
                       "adopted_blocks": it.adopted_blocks})
            });
            crate::say!("{}", json!({"restored": value}));
            return Ok(ExitCode::SUCCESS);
        }
        let Some(it) = restored else {
            crate::say!("The namespace was not restored, or that was accepted before");
            return Ok(ExitCode::SUCCESS);
        };
        let (entry, at) = (Moment::of_ms(it.entry_ms), Moment::of_ms(it.restored_ms));
        crate::say!("Restored at {at} to entry {} of {entry}", it.sequence);
        crate::say!(
            "Contiguous groups that DataNodes have: {} taken over, {} not; {} parities are to be read",
            it.adopted_groups,
            it.found_groups,
            it.unread_parities
        );
        crate::say!(
            "Small blocks in containers that DataNodes have: {} taken over; {} containers are to be read",
            it.adopted_blocks,
            it.unread_containers
        );
        for refused in &it.refused_groups {
            crate::say!("  {refused}");
        }
        match self.accept {
            true => crate::say!("Accepted: replicas that it does not know are deleted again"),
            false => crate::say!("No replica is deleted until `cairn admin restored --accept`"),
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rolling_upgrade_is_told_in_a_sentence() {
        let mut upgrade = RollingUpgrade {
            pool: "p".into(),
            start_ms: 1000,
            finalize_ms: None,
            has_rollback: true,
        };
        assert!(text(None).starts_with("There is no rolling upgrade"));
        assert!(text(Some(&upgrade)).contains("since 1970-01-01 00:00:01,000"));
        upgrade.finalize_ms = Some(2000);
        assert!(text(Some(&upgrade)).ends_with("finalized at 1970-01-01 00:00:02,000"));
    }
}
