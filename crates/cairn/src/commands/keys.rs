//! `cairn keys`: configuration keys, what they are set to, and what they are for.

use crate::Settings;
use crate::config::tables::{self, Row};
use anyhow::{Result, bail};
use serde_json::json;
use std::process::ExitCode;

/// Flags of `cairn keys`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only keys with one of these words in their names
    words: Vec<String>,
    /// Print the page of the documentation
    #[arg(long, hide = true)]
    page: bool,
}

/// Prints two lines for each key.
pub fn run(settings: &Settings, args: &Args) -> Result<ExitCode> {
    if args.page {
        crate::output::print(format_args!("{}", tables::page()));
        return Ok(ExitCode::SUCCESS);
    }
    let conf = settings.configuration()?;
    let mut rows = tables::rows();
    let is_named = |row: &Row| args.words.iter().any(|word| row.name.contains(word.as_str()));
    rows.retain(|row| args.words.is_empty() || is_named(row));
    if rows.is_empty() {
        bail!("no key has {} in its name", args.words.join(" or "));
    }
    for Row { role, name, takes, default, is_live, meaning } in rows {
        let value = conf.get(name);
        if settings.json {
            let line = json!({
                "role": role, "key": name, "takes": takes, "default": default, "value": value,
                "live": is_live, "meaning": meaning,
            });
            crate::say!("{line}");
            continue;
        }
        let is = match (&value, default) {
            (Some(value), "") => value.clone(),
            (Some(value), default) => format!("{value}, by default {default}"),
            (None, "") => "not set".to_string(),
            (None, default) => format!("{default}, the default"),
        };
        let live = if is_live { ", live" } else { "" };
        crate::say!("{name}: {is} ({role}; {takes}{live})\n    {meaning}");
    }
    Ok(ExitCode::SUCCESS)
}
