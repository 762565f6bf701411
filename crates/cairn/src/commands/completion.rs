//! `cairn completion` and `cairn man`: what shells and `man` know of the command line, made from the command line.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::{Shell, generate};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of `cairn completion`.
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Flags of `cairn man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The folder that gets a page for each command
    folder: PathBuf,
}

/// Prints what a shell is to read so that it completes words.
pub fn completion(args: &CompletionArgs, mut command: Command) -> ExitCode {
    let shell = match args.shell.as_str() {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        _ => Shell::Fish,
    };
    let mut text = Vec::new();
    generate(shell, &mut command, "cairn", &mut text);
    crate::output::print(format_args!("{}", String::from_utf8_lossy(&text)));
    ExitCode::SUCCESS
}

/// Writes a page for each command and sub-command.
pub fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    let about = || format!("cannot write {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(about)?;
    let mut command = command;
    command.build();
    pages(&args.folder, &command, "cairn").with_context(about)?;
    Ok(ExitCode::SUCCESS)
}

fn pages(folder: &Path, command: &Command, name: &str) -> std::io::Result<()> {
    let shown = command.clone().disable_help_subcommand(true);
    let mut text = Vec::new();
    clap_mangen::Man::new(shown).title(name.to_uppercase()).render(&mut text)?;
    std::fs::File::create(folder.join(format!("{name}.1")))?.write_all(&text)?;
    for sub in
        command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
    {
        pages(folder, sub, &format!("{name}-{}", sub.get_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("man");
        let command = crate::command_line();
        man(&ManArgs { folder: folder.clone() }, command).unwrap();
        for (page, word) in [
            ("cairn.1", "fs"),
            ("cairn-fs.1", "append"),
            ("cairn-fs-rm.1", "skip"),
            ("cairn-admin-decommission.1", "wait"),
        ] {
            let text = std::fs::read_to_string(folder.join(page)).unwrap();
            assert!(text.starts_with(".ie") && text.contains(word), "{page}: {text}");
        }
    }
}
