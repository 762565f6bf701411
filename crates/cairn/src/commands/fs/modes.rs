//! Modes, owners and groups.

use super::shell::Shell;
use anyhow::{Result, bail};
use cairn_client::FileStatus;

/// `cairn fs chmod`.
#[derive(Debug, clap::Args)]
pub struct Chmod {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Three or four octal digits, or clauses such as u=rwx,g+w,o-r; X is x for directories and what
    /// is executable already, t the sticky bit
    #[arg(allow_hyphen_values = true)]
    mode: String,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Chmod {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let mode = Mode::parse(&self.mode)?;
        let change = async |status: &FileStatus| {
            let permission = mode.of(status.permission, status.is_dir());
            if permission != status.permission {
                shell.fs.set_permission(&status.path, permission).await?;
            }
            Ok(())
        };
        shell.each(&self.paths, self.recursive, change).await;
        Ok(())
    }
}

/// `cairn fs chown`.
#[derive(Debug, clap::Args)]
pub struct Chown {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The new owner, group or both
    #[arg(value_name = "[OWNER][:GROUP]")]
    owner: String,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Chown {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let (owner, group) = self.owner.split_once(':').unwrap_or((&self.owner, ""));
        let named = |name: &str| Some(name.to_string()).filter(|name| !name.is_empty());
        let (owner, group) = (named(owner), named(group));
        if owner.is_none() && group.is_none() {
            bail!("'{}' names neither an owner nor a group", self.owner);
        }
        for name in owner.iter().chain(&group) {
            check_name(name)?;
        }
        set_owners(shell, &self.paths, self.recursive, owner.as_deref(), group.as_deref()).await;
        Ok(())
    }
}

/// `cairn fs chgrp`.
#[derive(Debug, clap::Args)]
pub struct Chgrp {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The new group
    group: String,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Chgrp {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        check_name(&self.group)?;
        set_owners(shell, &self.paths, self.recursive, None, Some(&self.group)).await;
        Ok(())
    }
}

/// Source: Hadoop 3.5.0 `FsShellPermissions#allowedChars`.
fn check_name(name: &str) -> Result<()> {
    let is_fine = |sign: char| sign.is_ascii_alphanumeric() || "-_./@".contains(sign);
    if !name.chars().all(is_fine) {
        bail!("'{name}' is no name of a user or group");
    }
    Ok(())
}

async fn set_owners(
    shell: &Shell,
    paths: &[String],
    recursive: bool,
    owner: Option<&str>,
    group: Option<&str>,
) {
    let change = async |status: &FileStatus| {
        let is_so = owner.is_none_or(|owner| owner == status.owner)
            && group.is_none_or(|group| group == status.group);
        if !is_so {
            shell.fs.set_owner(&status.path, owner, group).await?;
        }
        Ok(())
    };
    shell.each(paths, recursive, change).await;
}

/// The sticky bit.
const STICKY: u16 = 0o1000;

/// What `chmod` makes of a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// These bits.
    Bits(u16),
    /// Changes, one after the other.
    Clauses(Vec<Clause>),
}

/// What a clause does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Remove,
    Set,
}

/// A change: to whom, what, and which bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Of user, group and others, the bits `0o700`, `0o070` and `0o007`.
    classes: u16,
    operator: Operator,
    /// `rwx`, as for one class.
    bits: u16,
    /// `X`.
    execute_some: bool,
    /// `t`.
    sticky: bool,
}

impl Mode {
    /// Reads digits or clauses.
    ///
    /// Deviation: each clause is applied, as in POSIX; Hadoop heeds the last one about a class only.
    ///
    /// Source: Hadoop 3.5.0 `ChmodParser`.
    pub fn parse(text: &str) -> Result<Mode> {
        let plain = text.trim().trim_start_matches('+');
        if plain.starts_with(|sign: char| sign.is_ascii_digit()) {
            return match u16::from_str_radix(plain, 8) {
                Ok(bits) if matches!(plain.len(), 3 | 4) && bits <= 0o1777 => Ok(Mode::Bits(bits)),
                _ => bail!(
                    "'{text}' is no mode: three octal digits, or 1 for the sticky bit and three"
                ),
            };
        }
        let clauses = text.split(',').map(|clause| clause_of(clause.trim()));
        match clauses.collect::<Option<Vec<_>>>() {
            Some(clauses) => Ok(Mode::Clauses(clauses)),
            None => bail!("'{text}' is no mode: digits, or clauses such as u=rwx,g+w,o-r"),
        }
    }

    /// The permission bits that come of others.
    pub fn of(&self, permission: u16, is_dir: bool) -> u16 {
        match self {
            Mode::Bits(bits) => *bits,
            Mode::Clauses(clauses) => {
                clauses.iter().fold(permission, |bits, clause| clause.apply(bits, is_dir))
            }
        }
    }
}

fn clause_of(text: &str) -> Option<Clause> {
    let at = text.find(['+', '-', '='])?;
    let mut classes = 0;
    for sign in text[..at].chars() {
        classes |= match sign {
            'u' => 0o700,
            'g' => 0o070,
            'o' => 0o007,
            'a' => 0o777,
            _ => return None,
        };
    }
    if classes == 0 {
        classes = 0o777;
    }
    let operator = match text.as_bytes()[at] {
        b'+' => Operator::Add,
        b'-' => Operator::Remove,
        _ => Operator::Set,
    };
    let (mut bits, mut execute_some, mut sticky) = (0, false, false);
    for sign in text[at + 1..].chars() {
        match sign {
            'r' => bits |= 4,
            'w' => bits |= 2,
            'x' => bits |= 1,
            'X' => execute_some = true,
            't' => sticky = true,
            _ => return None,
        }
    }
    let is_empty = bits == 0 && !execute_some && !sticky;
    (!is_empty || operator == Operator::Set).then_some(Clause {
        classes,
        operator,
        bits,
        execute_some,
        sticky,
    })
}

impl Clause {
    fn apply(&self, permission: u16, is_dir: bool) -> u16 {
        let execute = self.execute_some && (is_dir || permission & 0o111 != 0);
        let bits = ((self.bits | u16::from(execute)) * 0o111) & self.classes;
        // The sticky bit is with the bits of others.
        let reaches_sticky = self.classes & 0o007 != 0;
        let sticky = if self.sticky && reaches_sticky { STICKY } else { 0 };
        match self.operator {
            Operator::Add => permission | bits | sticky,
            Operator::Remove => permission & !(bits | sticky),
            Operator::Set => {
                let cleared = self.classes | if reaches_sticky { STICKY } else { 0 };
                permission & !cleared | bits | sticky
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_digits_or_clauses() {
        for (mode, from, is_dir, want) in [
            ("640", 0o1777, false, 0o640),
            ("1777", 0, true, 0o1777),
            ("u=rwx,g+w,o-r", 0o644, false, 0o760),
            ("+x", 0o644, false, 0o755),
            ("a+X", 0o640, false, 0o640),
            ("a+X", 0o640, true, 0o751),
            ("a+X", 0o740, false, 0o751),
            ("u+rwX,g+rX,o=", 0o640, true, 0o750),
            ("+t", 0o751, true, 0o1751),
            ("-t,g-w,o+w", 0o1775, true, 0o757),
            ("u=rwx,g=rx,o=t", 0o1777, false, 0o1750),
            ("u=r,u+w", 0o777, false, 0o677),
            ("-w", 0o666, false, 0o444),
        ] {
            assert_eq!(Mode::parse(mode).unwrap().of(from, is_dir), want, "{mode}");
        }
        for wrong in ["4755", "7777", "0", "888", "abc", "u", "u+", "x+r", "u+s", ""] {
            assert!(Mode::parse(wrong).is_err(), "{wrong}");
        }
    }
}
