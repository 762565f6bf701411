//! What a NameNode's audit log says of directories: who opens, creates and appends there, and when last.
//!
//! The log has no `hflush` and no `hsync`: neither Hadoop nor Cairn writes a line for these.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem.FSNamesystemAuditLogger#logAuditEvent`: fields `name=value`, a tab between them.

use std::collections::HashMap;

/// What was done in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Files that were opened.
    pub opens: u64,
    /// Files that were created.
    pub creates: u64,
    /// Files that were appended to, truncated or concatenated.
    pub appends: u64,
    /// When a file was last opened, as the log writes time.
    pub last_open: Option<String>,
}

/// Collects what was done, by rows.
#[derive(Debug, Default)]
pub struct Audit {
    rows: HashMap<String, Use>,
    /// Lines of calls.
    pub calls: u64,
    /// Lines that are none.
    pub others: u64,
}

/// Bytes of a time like `2026-11-27 18:43:41`.
const TIME_LEN: usize = 19;

impl Audit {
    /// For rows of these paths.
    pub fn new<'a>(rows: impl Iterator<Item = &'a str>) -> Audit {
        let rows = rows.map(|path| (path.to_string(), Use::default())).collect();
        Audit { rows, ..Audit::default() }
    }

    /// Takes a line.
    pub fn line(&mut self, line: &str) {
        let field = |name: &str| {
            let at = line.find(name)? + name.len();
            line[at..].split(['\t', '\n']).next()
        };
        let (Some(command), Some(path)) = (field("cmd="), field("src=")) else {
            self.others += 1;
            return;
        };
        self.calls += 1;
        if field("allowed=") != Some("true") {
            return;
        }
        let Some(row) = self.row_of(path) else { return };
        match command.split([' ', '(']).next().unwrap_or_default() {
            "open" => {
                row.opens += 1;
                let time = line.get(..TIME_LEN).filter(|time| time.starts_with(char::is_numeric));
                // Lines come in order, but files of several days may not.
                row.last_open = row.last_open.take().max(time.map(str::to_string));
            }
            "create" => row.creates += 1,
            "append" | "truncate" | "concat" => row.appends += 1,
            _ => {}
        }
    }

    /// The row of the longest path that leads there.
    fn row_of(&mut self, path: &str) -> Option<&mut Use> {
        let mut at = path;
        while !self.rows.contains_key(at) {
            at = match at.rfind('/') {
                Some(0) if at.len() > 1 => "/",
                Some(end) if end > 0 => &at[..end],
                _ => return None,
            };
        }
        self.rows.get_mut(at)
    }

    /// What was done in a row.
    pub fn of(&self, path: &str) -> Option<&Use> {
        self.rows.get(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: &str, allowed: bool, command: &str, src: &str) -> String {
        format!(
            "{time},123 INFO FSNamesystem.audit: allowed={allowed}\tugi=bob (auth:SIMPLE)\tip=/10.0.0.1\t\
             cmd={command}\tsrc={src}\tdst=null\tperm=null\tproto=rpc"
        )
    }

    #[test]
    fn calls_count_for_the_row_that_has_the_path() {
        let mut audit = Audit::new(["/", "/a", "/a/b"].into_iter());
        for (time, allowed, command, src) in [
            ("2026-11-02 10:00:00", true, "open", "/a/b/c/d"),
            ("2026-11-01 10:00:00", true, "open", "/a/b/c"),
            ("2026-11-01 10:00:00", true, "create", "/a/bc"),
            ("2026-11-01 10:00:00", false, "append", "/a/x"),
            ("2026-11-01 10:00:00", true, "append", "/a/x"),
            ("2026-11-01 10:00:00", true, "rename (options=[TO_TRASH])", "/a/x"),
            ("2026-11-01 10:00:00", true, "open", "/z"),
        ] {
            audit.line(&line(time, allowed, command, src));
        }
        audit.line("java.io.IOException: no call");
        assert_eq!((audit.calls, audit.others), (7, 1));
        let b = Use { opens: 2, last_open: Some("2026-11-02 10:00:00".into()), ..Use::default() };
        assert_eq!(audit.of("/a/b"), Some(&b));
        let a = Use { creates: 1, appends: 1, ..Use::default() };
        assert_eq!(audit.of("/a"), Some(&a));
        assert_eq!(audit.of("/").map(|of| of.opens), Some(1));
    }

    #[test]
    fn no_line_makes_it_panic() {
        let mut audit = Audit::new(["/"].into_iter());
        for text in
            ["", "cmd=", "src=\tcmd=open", "cmd=open\tsrc=", "é cmd=open\tsrc=/é\tallowed=true"]
        {
            audit.line(text);
        }
    }
}
