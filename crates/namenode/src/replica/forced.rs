//! One member goes on alone, because the others are lost for good.

use super::agreed::data;
use super::error::ReplicaError;
use crate::config::NameNodeConfig;
use crate::config::quorum::QuorumConfig;
use crate::journal::Restored;
use crate::journal::follower::Follower;
use crate::quorum::{Left, begin_anew, left};
use crate::run;

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// What the member has, or had.
    pub left: Left,
    /// The last entry of the namespace that it goes on from.
    pub last: u64,
    /// It was done; otherwise it was looked at only.
    pub is_done: bool,
}

/// Has the member in the folders of `config`, which does not run, begin a quorum of its own with all that it has, if
/// `does`; otherwise says only what it has. None if there is no member there. A second try goes on where the first was
/// interrupted.
pub async fn force(config: NameNodeConfig, does: bool) -> Result<Option<Forced>, ReplicaError> {
    let QuorumConfig { id, dir, .. } = config.quorum.clone().ok_or(ReplicaError::NoQuorum)?;
    let superuser = run::superuser(&config).await?;
    let options = run::namesystem_options(&config, &superuser, None);
    let work = move || {
        // As long as it is open no NameNode runs there.
        let follower = Follower::open(&config.name_dir, &options)?;
        let Some(left) = left(&dir)? else { return Ok(None) };
        let Some(mut follower) = follower else {
            let (name, quorum) = (config.name_dir, dir);
            return Err(ReplicaError::NoNamespace { name, quorum });
        };
        if !does {
            return Ok(Some(Forced { last: follower.last(), left, is_done: false }));
        }
        for entry in &left.entries {
            let group = data(entry);
            if !group.is_empty() {
                follower.take(group)?;
            }
        }
        let Restored { sequence, .. } = follower.begin_anew(&config.name_dir)?;
        begin_anew(&dir, &id, &left)?;
        Ok(Some(Forced { last: sequence, left, is_done: true }))
    };
    tokio::task::spawn_blocking(work).await?
}
