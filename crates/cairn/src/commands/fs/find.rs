//! `cairn fs find`.

use super::glob;
use super::shell::Shell;
use super::show::status_json;
use crate::output;
use anyhow::Result;
use cairn_client::FileStatus;
use regex_lite::Regex;

/// `cairn fs find`.
#[derive(Debug, clap::Args)]
pub struct Find {
    /// Whose name fits this pattern; of several conditions all must hold
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    name: Vec<String>,
    /// The same, whatever letters are large
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    iname: Vec<String>,
    /// Show the path with a zero byte behind it, not a new line
    #[arg(long)]
    print0: bool,
    /// Where to look (default: your folder)
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

impl Find {
    pub async fn run(mut self, shell: &Shell) -> Result<()> {
        if self.paths.is_empty() {
            self.paths.push(".".to_string());
        }
        let exact = self.name.iter().map(|pattern| glob::regex(pattern));
        let exact = exact.collect::<Result<Vec<Regex>>>()?;
        let folded = self.iname.iter().map(|pattern| glob::regex(&pattern.to_lowercase()));
        let folded = folded.collect::<Result<Vec<Regex>>>()?;
        let show = async |status: &FileStatus| {
            let name = status.name();
            let fits = exact.iter().all(|regex| regex.is_match(name))
                && folded.iter().all(|regex| regex.is_match(&name.to_lowercase()));
            match fits {
                false => {}
                true if shell.json => crate::say!("{}", status_json(status)),
                true if self.print0 => output::print(format_args!("{}\0", status.path)),
                true => crate::say!("{}", status.path),
            }
            Ok(())
        };
        shell.each(&self.paths, true, show).await;
        Ok(())
    }
}
