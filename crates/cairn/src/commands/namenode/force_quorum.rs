//! `cairn namenode force-quorum`: what is left of a quorum goes on.

use crate::{Settings, config};
use anyhow::{Context, Result, bail};
use cairn_namenode::replica::{self, Forced};
use serde_json::json;
use std::process::ExitCode;

/// `cairn namenode force-quorum`.
#[derive(Debug, clap::Args)]
pub struct ForceQuorum {
    /// Do it; otherwise it is only said what this NameNode has
    #[arg(long)]
    yes: bool,
}

impl ForceQuorum {
    pub async fn run(self, settings: &Settings) -> Result<ExitCode> {
        let node = config::namenode::read(&settings.configuration()?)?;
        let Some(quorum) = node.quorum.clone() else {
            bail!("no quorum is configured: cairn.quorum.address has no member");
        };
        let folder = quorum.dir.display();
        let forced = replica::force(node, self.yes).await;
        let forced = forced.with_context(|| format!("{folder}: the quorum was not begun anew"))?;
        let forced = forced.with_context(|| format!("{folder}: no member of a quorum is there"))?;
        match settings.json {
            true => crate::say!("{}", as_json(&quorum.id, &forced)),
            false => tell(&quorum.id, &forced),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn as_json(id: &str, Forced { left, last, is_done }: &Forced) -> serde_json::Value {
    json!({
        "name": id,
        "term": left.last.term,
        "entry": left.last.index,
        "agreed": left.commit,
        "lost": left.lost.map(|lost| json!({"term": lost.term, "entry": lost.index})),
        "members": left.members.0.values().map(|member| &member.name).collect::<Vec<_>>(),
        "last": last,
        "next_term": left.next_term(),
        "done": is_done,
    })
}

fn tell(id: &str, Forced { left, last, is_done }: &Forced) {
    let (term, index, agreed) = (left.last.term, left.last.index, left.commit);
    crate::say!("{id} has the log of its quorum up to entry {index} of term {term}");
    crate::say!(
        "It knows that all up to entry {agreed} was agreed on; its namespace ends with {last}"
    );
    if let Some(lost) = left.lost {
        crate::say!(
            "Its log had gone up to entry {} of term {}: the end is lost",
            lost.index,
            lost.term
        );
    }
    let members = left.members.0.values().map(|member| match member.is_voter {
        true => member.name.clone(),
        false => format!("{} (does not vote)", member.name),
    });
    let names: Vec<String> = members.collect();
    crate::say!("Members, as far as it has heard: {}", names.join(", "));
    crate::say!("What others have agreed on behind entry {index} is lost, acknowledged or not.");
    if *is_done {
        crate::say!(
            "{id} has begun a new quorum, alone, in term {}. Empty the quorum folders of the others, then start them: \
             they join. Nothing is deleted on DataNodes before cairn admin restored --accept.",
            left.next_term()
        );
    } else {
        crate::say!(
            "Nothing was done. Take the member with the highest term, and of these the one with the highest entry; stop \
             all others for good, copy its folders, and say --yes."
        );
    }
}
