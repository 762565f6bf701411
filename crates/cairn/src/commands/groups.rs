//! `cairn groups`: which groups users are in, as the NameNode sees it.

use crate::{Settings, config};
use anyhow::Result;
use cairn_client::FileSystem;
use serde_json::json;
use std::process::ExitCode;

/// Flags of `cairn groups`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The users (default: you)
    users: Vec<String>,
}

/// Prints one line for each user.
pub async fn run(settings: &Settings, mut args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    if args.users.is_empty() {
        args.users.push(fs.config().user.clone());
    }
    for user in args.users {
        let groups = fs.namenode().groups(&user).await?;
        if settings.json {
            crate::say!("{}", json!({"user": user, "groups": groups}));
        } else {
            crate::say!("{user} : {}", groups.join(" "));
        }
    }
    Ok(ExitCode::SUCCESS)
}
