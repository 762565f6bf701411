//! How files are shown: listings, everything about a file, and formats of one's own.

use super::shell::{Shell, help};
use crate::output;
use anyhow::Result;
use cairn_client::FileStatus;
use cairn_net::date::Moment;
use serde_json::{Value, json};

/// Rows whose columns are as wide as the widest of them.
const ROWS: usize = 1000;
/// Narrowest column of lengths, as Hadoop's.
const LENGTH_WIDTH: usize = 10;

/// `cairn fs ls`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, arg = help())]
pub struct Ls {
    /// And all below them
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Directories themselves, not what is in them
    #[arg(short, long)]
    directory: bool,
    /// Paths only
    #[arg(short = 'C', long)]
    path_only: bool,
    /// Lengths with units
    #[arg(short = 'h', long)]
    human: bool,
    /// ? in the place of signs that cannot be printed
    #[arg(short = 'q', long)]
    hide_control: bool,
    /// Newest first
    #[arg(short = 't', long)]
    time: bool,
    /// Largest first
    #[arg(short = 'S', long)]
    size: bool,
    /// In the opposite order
    #[arg(short, long)]
    reverse: bool,
    /// The time of the last read, not of the last change
    #[arg(short = 'u', long)]
    access_time: bool,
    /// The policies of erasure coded files in a column of their own
    #[arg(short = 'e', long)]
    policies: bool,
    /// What to list (default: your folder)
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

impl Ls {
    pub async fn run(mut self, shell: &Shell) -> Result<()> {
        if self.paths.is_empty() {
            self.paths.push(".".to_string());
        }
        for status in shell.find_all(&self.paths).await {
            if self.directory || !status.is_dir() {
                self.show(shell, &[status]);
            } else {
                shell.keep(self.list(shell, &status.path).await);
            }
        }
        Ok(())
    }

    /// What is in a directory, and with `--recursive` below each entry what is in that.
    async fn list(&self, shell: &Shell, path: &str) -> Result<()> {
        if !self.recursive && !shell.is_hadoop && !self.has_order() {
            return self.stream(shell, path).await;
        }
        let rows = self.rows(shell, path).await?;
        if !self.recursive {
            if !rows.is_empty() && !self.path_only && !shell.json {
                shell.tell_hadoop(format_args!("Found {} items", rows.len()));
            }
            self.show(shell, &rows);
            return Ok(());
        }
        let mut open = vec![(self.widths(shell, &rows), rows.into_iter())];
        while let Some((widths, rows)) = open.last_mut() {
            let Some(row) = rows.next() else {
                open.pop();
                continue;
            };
            self.show_row(shell, &row, widths);
            if row.is_dir()
                && let Some(rows) = shell.keep(self.rows(shell, &row.path).await)
            {
                open.push((self.widths(shell, &rows), rows.into_iter()));
            }
        }
        Ok(())
    }

    /// All entries of a directory, in order.
    async fn rows(&self, shell: &Shell, path: &str) -> Result<Vec<FileStatus>> {
        let mut rows = shell.fs.list(path).collect().await?;
        self.sort(&mut rows);
        Ok(rows)
    }

    /// Shows entries as they come, so that a directory may have any number of them.
    async fn stream(&self, shell: &Shell, path: &str) -> Result<()> {
        let (mut entries, mut rows) = (shell.fs.list(path), Vec::new());
        while let Some(entry) = entries.next().await? {
            rows.push(entry);
            if rows.len() == ROWS {
                self.show(shell, &rows);
                rows.clear();
            }
        }
        self.show(shell, &rows);
        Ok(())
    }

    fn has_order(&self) -> bool {
        self.time || self.size || self.reverse
    }

    /// In the order that was asked for; those that are alike stay in the order of their names.
    fn sort(&self, rows: &mut [FileStatus]) {
        let order = |a: &FileStatus, b: &FileStatus| match self {
            Ls { time: true, .. } => self.moment_ms(b).cmp(&self.moment_ms(a)),
            Ls { size: true, .. } => b.len.cmp(&a.len),
            _ => a.path.cmp(&b.path),
        };
        if self.has_order() {
            rows.sort_by(|a, b| if self.reverse { order(b, a) } else { order(a, b) });
        }
    }

    fn moment_ms(&self, status: &FileStatus) -> u64 {
        if self.access_time { status.access_time_ms } else { status.modification_time_ms }
    }

    fn show(&self, shell: &Shell, rows: &[FileStatus]) {
        let widths = self.widths(shell, rows);
        rows.iter().for_each(|row| self.show_row(shell, row, &widths));
    }

    fn show_row(&self, shell: &Shell, row: &FileStatus, widths: &Widths) {
        if shell.json {
            crate::say!("{}", status_json(row));
            return;
        }
        let path = match self.hide_control {
            true => row.path.replace(|sign: char| sign.is_control() || is_format(sign), "?"),
            false => row.path.clone(),
        };
        if self.path_only {
            crate::say!("{path}");
            return;
        }
        let Widths { redundancy, owner, group, policy, length } = *widths;
        let mut line = format!(
            "{}{}{}{:>redundancy$} {:<owner$} {:<group$} ",
            if row.is_dir() { 'd' } else { '-' },
            permission_text(row.permission),
            if row.has_acl { '+' } else { ' ' },
            redundancy_text(shell, row),
            row.owner,
            row.group,
        );
        if policy > 0 {
            line.push_str(&format!("{:<policy$} ", self.policy(row)));
        }
        let time = Moment::of_ms(self.moment_ms(row)).to_the_minute();
        crate::say!("{line}{:>length$} {time} {path}", self.length(row));
    }

    fn widths(&self, shell: &Shell, rows: &[FileStatus]) -> Widths {
        let widest = |cell: &dyn Fn(&FileStatus) -> usize| rows.iter().map(cell).max().unwrap_or(0);
        Widths {
            // A blank before a policy's name; Hadoop has none before three digits.
            redundancy: widest(&|row| {
                redundancy_text(shell, row).len() + usize::from(!shell.is_hadoop)
            })
            .max(3),
            owner: widest(&|row| row.owner.chars().count()),
            group: widest(&|row| row.group.chars().count()),
            policy: widest(&|row| self.policy(row).len()),
            length: widest(&|row| self.length(row).len()).max(LENGTH_WIDTH),
        }
    }

    fn length(&self, row: &FileStatus) -> String {
        output::size_or_short(row.len, self.human)
    }

    fn policy<'a>(&self, row: &'a FileStatus) -> &'a str {
        match &row.policy {
            _ if !self.policies => "",
            Some(policy) => &policy.name,
            None if row.is_dir() => "",
            None => "Replicated",
        }
    }
}

/// How wide the columns of a listing are.
struct Widths {
    redundancy: usize,
    owner: usize,
    group: usize,
    policy: usize,
    length: usize,
}

fn redundancy_text(shell: &Shell, row: &FileStatus) -> String {
    match &row.policy {
        _ if row.is_dir() => "-".to_string(),
        Some(policy) if !shell.is_hadoop => policy.name.clone(),
        _ => row.replication.to_string(),
    }
}

/// Whether a sign takes no place of its own, such as a space without width.
fn is_format(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// `cairn fs stat`.
#[derive(Debug, clap::Args)]
pub struct Stat {
    /// And all below
    #[arg(short = 'R', long)]
    recursive: bool,
    /// What to show: %a %A mode in digits and letters, %b bytes, %F kind, %g group, %n name, %o bytes of
    /// a block, %r copies, %u owner, %x %X last read, %y %Y last change as a date and in milliseconds
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The files; a first word with % in it is a format
    #[arg(required = true, value_name = "[FORMAT] PATH")]
    paths: Vec<String>,
}

impl Stat {
    pub async fn run(mut self, shell: &Shell) -> Result<()> {
        if self.format.is_none() && self.paths.len() > 1 && self.paths[0].contains('%') {
            self.format = Some(self.paths.remove(0));
        }
        if self.format.is_none() && shell.is_hadoop {
            self.format = Some("%y".to_string());
        }
        let format = &self.format;
        let show = async |status: &FileStatus| {
            match format {
                _ if shell.json => crate::say!("{}", status_json(status)),
                Some(format) => crate::say!("{}", formatted(format, status)),
                None => output::print(format_args!("{}", fields(&status_json(status)))),
            }
            Ok(())
        };
        shell.each(&self.paths, self.recursive, show).await;
        Ok(())
    }
}

/// The fields of an object, one a line.
fn fields(value: &Value) -> String {
    let row = |(key, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        vec![key.clone(), text]
    };
    let rows = value.as_object().map(|fields| fields.iter().map(row).collect::<Vec<_>>());
    output::table(&rows.unwrap_or_default())
}

/// Source: Hadoop 3.5.0 `Stat#processPath`.
fn formatted(format: &str, status: &FileStatus) -> String {
    let date = |ms: u64| {
        let moment = Moment::of_ms(ms);
        format!("{}:{:02}", moment.to_the_minute(), moment.second)
    };
    let mut text = String::new();
    let mut signs = format.chars();
    while let Some(sign) = signs.next() {
        if sign != '%' {
            text.push(sign);
            continue;
        }
        match signs.next() {
            None => {}
            Some('a') => text.push_str(&format!("{:o}", status.permission)),
            Some('A') => text.push_str(&permission_text(status.permission)),
            Some('b') => text.push_str(&status.len.to_string()),
            Some('F') => text.push_str(if status.is_dir() { "directory" } else { "regular file" }),
            Some('g') => text.push_str(&status.group),
            Some('n') => text.push_str(status.name()),
            Some('o') => text.push_str(&status.block_size.to_string()),
            Some('r') => text.push_str(&status.replication.to_string()),
            Some('u') => text.push_str(&status.owner),
            Some('x') => text.push_str(&date(status.access_time_ms)),
            Some('X') => text.push_str(&status.access_time_ms.to_string()),
            Some('y') => text.push_str(&date(status.modification_time_ms)),
            Some('Y') => text.push_str(&status.modification_time_ms.to_string()),
            Some(other) => text.push(other),
        }
    }
    text
}

/// All that is known of a file.
pub fn status_json(status: &FileStatus) -> Value {
    json!({
        "path": status.path,
        "type": format!("{:?}", status.file_type).to_lowercase(),
        "length": status.len,
        "permission": format!("{:04o}", status.permission),
        "owner": status.owner,
        "group": status.group,
        "modification_time_ms": status.modification_time_ms,
        "access_time_ms": status.access_time_ms,
        "replication": status.replication,
        "block_size": status.block_size,
        "file_id": status.file_id,
        "policy": status.policy.as_ref().map(|policy| policy.name.as_str()),
        "acl": status.has_acl,
        "encrypted": status.is_encrypted,
    })
}

/// `rwxr-xr-t`.
pub fn permission_text(bits: u16) -> String {
    let letters =
        (0..9).map(|i| if bits & (0o400 >> i) != 0 { b"rwx"[i % 3] as char } else { '-' });
    let mut text: String = letters.collect();
    if bits & 0o1000 != 0 {
        text.pop();
        text.push(if bits & 1 != 0 { 't' } else { 'T' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::FileType;

    #[test]
    fn permissions_read_like_those_of_ls() {
        for (bits, want) in [
            (0o755, "rwxr-xr-x"),
            (0o640, "rw-r-----"),
            (0o1777, "rwxrwxrwt"),
            (0o1770, "rwxrwx--T"),
        ] {
            assert_eq!(permission_text(bits), want);
        }
    }

    #[test]
    fn formats_are_hadoops() {
        let status = FileStatus {
            path: "/d/f".into(),
            file_type: FileType::File,
            len: 6,
            permission: 0o640,
            owner: "ann".into(),
            group: "crew".into(),
            modification_time_ms: 1000,
            access_time_ms: 0,
            replication: 3,
            block_size: 1 << 20,
            file_id: 1,
            children_count: None,
            policy: None,
            storage_policy: 0,
            has_acl: false,
            is_encrypted: false,
            encryption: None,
        };
        for (format, want) in [
            (
                "%a|%A|%b|%F|%g|%n|%o|%r|%u|%X|%Y",
                "640|rw-r-----|6|regular file|crew|f|1048576|3|ann|0|1000",
            ),
            ("%x %y", "1970-01-01 00:00:00 1970-01-01 00:00:01"),
            ("size %b of %n 100%", "size 6 of f 100"),
            ("%q %%", "q %"),
        ] {
            assert_eq!(formatted(format, &status), want);
        }
    }
}
