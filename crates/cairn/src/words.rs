//! Words of the command line before they are parsed.
//!
//! `crypto`, `ec` and `fsck` take all that is behind them as options of the command of `hdfs` of that name. What every
//! command takes may stand there too. What Hadoop writes with one dash, `cairn fs -rm -skipTrash`, becomes what the
//! parser knows (`cairn fs rm --skip-trash`).

use std::ffi::OsString;

/// The options of every command that a value follows.
const VALUED: [&str; 4] = ["--conf", "--fs", "--log", "-D"];
/// The commands with words of their own.
const WORDY: [&str; 3] = ["crypto", "ec", "fsck"];

/// Those that Hadoop calls by words with one dash.
const TOOLS: [&str; 4] = ["admin", "cacheadmin", "debug", "storagepolicies"];

/// Commands of `hdfs` that are sub-commands here.
const COMMANDS: [(&str, [&str; 2]); 3] = [
    ("lsSnapshot", ["snapshot", "list"]),
    ("lsSnapshottableDir", ["snapshot", "directories"]),
    ("snapshotDiff", ["snapshot", "diff"]),
];

/// How many words an option of every command has; 0 for a word that is none.
fn length(word: &str) -> usize {
    let is_assigned = VALUED.iter().any(|option| {
        let rest = word.strip_prefix(option).unwrap_or_default();
        if *option == "-D" { rest.contains('=') } else { rest.starts_with('=') }
    });
    match word {
        _ if VALUED.contains(&word) => 2,
        "--json" => 1,
        _ => usize::from(is_assigned),
    }
}

/// What the parser is to read: options of every command first where it could not know them, and Hadoop's words as its
/// own.
pub fn understood(words: Vec<OsString>) -> Vec<OsString> {
    let command = skip_options(&words, 1);
    let is = |name: &str| words.get(command).is_some_and(|word| word == name);
    if WORDY.iter().any(|name| is(name)) {
        return options_first(words, command);
    }
    if let Some((_, present)) = COMMANDS.iter().find(|(name, _)| is(name)) {
        let present = present.iter().map(OsString::from);
        let (first, rest) =
            (words[..command].iter().cloned(), words[command + 1..].iter().cloned());
        return first.chain(present).chain(rest).collect();
    }
    let hadoop = skip_options(&words, command + 1);
    match () {
        _ if is("fs") => of_shell(words, hadoop),
        _ if TOOLS.iter().any(|name| is(name)) => of_tool(words, hadoop),
        _ => words,
    }
}

/// The place of the first word from `at` on that is no option of every command.
fn skip_options(words: &[OsString], mut at: usize) -> usize {
    let length_at = |at: usize| words.get(at).and_then(|word| word.to_str()).map_or(0, length);
    while length_at(at) > 0 {
        at += length_at(at);
    }
    at
}

/// Moves the options of every command before the one that takes all words.
fn options_first(words: Vec<OsString>, command: usize) -> Vec<OsString> {
    let length_at = |at: usize| words.get(at).and_then(|word| word.to_str()).map_or(0, length);
    let (mut first, mut rest) = (words[..command].to_vec(), vec![words[command].clone()]);
    let mut at = command + 1;
    while at < words.len() {
        let end = (at + length_at(at).max(1)).min(words.len());
        let into = if length_at(at) > 0 { &mut first } else { &mut rest };
        into.extend_from_slice(&words[at..end]);
        at = end;
    }
    first.extend(rest);
    first
}

/// The words of a tool that Hadoop calls by `-subCommand -someOption`, with the sub-command at `at`.
fn of_tool(words: Vec<OsString>, at: usize) -> Vec<OsString> {
    // More than one letter behind one dash; numbers stay what they are.
    let long = |word: &OsString| {
        let name = word.to_str()?.strip_prefix('-')?;
        let is_word = name.len() > 1 && name.starts_with(|sign: char| sign.is_ascii_alphabetic());
        is_word.then(|| name.to_string())
    };
    let Some(name) = words.get(at).and_then(long) else { return words };
    let mut understood = words[..at].to_vec();
    if let "help" | "usage" = name.as_str() {
        understood.extend(words.get(at + 1).cloned());
        understood.push("--help".into());
        return understood;
    }
    understood.push(name.into());
    for word in &words[at + 1..] {
        match long(word).filter(|_| length(&word.to_string_lossy()) == 0) {
            Some(name) => understood.push(format!("--{}", kebab(&name)).into()),
            None => understood.push(word.clone()),
        }
    }
    understood
}

/// `some-option` for `someOption`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for sign in name.chars() {
        if sign.is_ascii_uppercase() {
            text.push('-');
        }
        text.push(sign.to_ascii_lowercase());
    }
    text
}

/// Options that Hadoop's shell writes with one dash, and what they are called here.
const SHELL_OPTIONS: [(&str, &str); 6] = [
    ("-fs", "--fs"),
    ("-immediate", "--immediate"),
    ("-nl", "--nl"),
    ("-safely", "--safely"),
    ("-skip-empty-file", "--skip-empty-file"),
    ("-skipTrash", "--skip-trash"),
];
/// Those of `-find`.
const FIND_OPTIONS: [(&str, &str); 3] =
    [("-iname", "--iname"), ("-name", "--name"), ("-print0", "--print0")];
/// Options of Hadoop's that change nothing here, the sub-commands that have them, and whether a value follows: bytes are
/// always compared with their checksums, files go one after the other, conditions all hold, trees are whole.
const IDLE_OPTIONS: [(&[&str], &str, bool); 10] = [
    (&["cat", "copyToLocal", "get", "text"], "-ignoreCrc", false),
    (&["copyToLocal", "get"], "-crc", false),
    (&["copyToLocal", "get"], "-d", false),
    (&["copyFromLocal", "copyToLocal", "cp", "get", "put"], "-q", true),
    (&["copyFromLocal", "copyToLocal", "cp", "get", "put"], "-t", true),
    (&["moveFromLocal", "moveToLocal"], "-crc", false),
    (&["find"], "-a", false),
    (&["find"], "-and", false),
    (&["find"], "-print", false),
    (&["setrep"], "-R", false),
];
/// Sub-commands that Hadoop has given up, and what they stand for.
const FORMER: [(&str, [&str; 2]); 3] =
    [("dus", ["du", "-s"]), ("lsr", ["ls", "-R"]), ("rmr", ["rm", "-r"])];

/// The words of `cairn fs -COMMAND`, with the sub-command at `at`, as the parser knows them.
fn of_shell(words: Vec<OsString>, at: usize) -> Vec<OsString> {
    let named = words.get(at).and_then(|word| word.to_str()?.strip_prefix('-'));
    let Some(name) = named.filter(|name| name.len() > 1 && !name.starts_with('-')) else {
        return words;
    };
    let mut understood = words[..at].to_vec();
    let rest = &words[at + 1..];
    if let "help" | "usage" = name {
        understood.extend(rest.iter().take(1).cloned());
        understood.push("--help".into());
        return understood;
    }
    understood.push("--as-hadoop".into());
    match FORMER.iter().find(|(former, _)| *former == name) {
        Some((_, present)) => understood.extend(present.map(OsString::from)),
        None => understood.push(name.into()),
    }
    let mut rest = rest.iter().peekable();
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        let options: &[(&str, &str)] = if name == "find" { &FIND_OPTIONS } else { &SHELL_OPTIONS };
        let kept = text.strip_prefix("-p").filter(|kept| !kept.is_empty() && name == "cp");
        let idle =
            IDLE_OPTIONS.iter().find(|(of, option, _)| of.contains(&name) && *option == text);
        if let Some((.., has_value)) = idle {
            rest.next_if(|_| *has_value);
        } else if let Some((_, option)) = options.iter().find(|(option, _)| *option == text) {
            understood.push(option.into());
        } else if let Some(kept) = kept {
            understood.push(format!("--preserve={kept}").into());
        } else if name == "count" && text == "-t" {
            // Types may follow, or a path.
            let types = rest.next_if(|word| !word.to_str().is_some_and(|word| word.contains('/')));
            let types = types.and_then(|types| types.to_str()).unwrap_or_default();
            understood.push(format!("--types={types}").into());
        } else {
            understood.push(word.clone());
        }
    }
    understood
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_every_command_may_stand_anywhere() {
        for (given, wanted) in [
            ("cairn ec -listPolicies --conf DIR", "cairn --conf DIR ec -listPolicies"),
            ("cairn crypto -listZones --json", "cairn --json crypto -listZones"),
            (
                "cairn ec --fs=U -getPolicy -path /a -Da=b",
                "cairn --fs=U -Da=b ec -getPolicy -path /a",
            ),
            ("cairn -D a=b fsck / --json -files", "cairn -D a=b --json fsck / -files"),
            ("cairn --conf ec fsck -move --log", "cairn --conf ec --log fsck -move"),
            ("cairn fs ls --fs U", "cairn fs ls --fs U"),
            ("cairn fs put ec --json", "cairn fs put ec --json"),
            ("cairn fs -h", "cairn fs -h"),
            ("cairn fs --fs U -ls -R /", "cairn fs --fs U --as-hadoop ls -R /"),
            (
                "cairn fs -Da=b -rm -r -skipTrash /a",
                "cairn fs -Da=b --as-hadoop rm -r --skip-trash /a",
            ),
            ("cairn fs -lsr /a", "cairn fs --as-hadoop ls -R /a"),
            ("cairn fs -find / -name -nl -a -print", "cairn fs --as-hadoop find / --name -nl"),
            ("cairn fs -get -t 4 -ignoreCrc /a b", "cairn fs --as-hadoop get /a b"),
            ("cairn fs -cp -ptopax -p /a /b", "cairn fs --as-hadoop cp --preserve=topax -p /a /b"),
            ("cairn fs -count -q -t ssd /a", "cairn fs --as-hadoop count -q --types=ssd /a"),
            ("cairn fs -count -t /a", "cairn fs --as-hadoop count --types= /a"),
            ("cairn admin -setQuota 20 /x", "cairn admin setQuota 20 /x"),
            (
                "cairn admin -setSpaceQuota -1 -storageType SSD -Da=b /x",
                "cairn admin setSpaceQuota -1 --storage-type SSD -Da=b /x",
            ),
            ("cairn --fs U snapshotDiff /d a .", "cairn --fs U snapshot diff /d a ."),
            ("cairn admin --json -help safemode", "cairn admin --json safemode --help"),
            ("cairn admin set-quota 1 /x", "cairn admin set-quota 1 /x"),
            ("cairn fs -help ls", "cairn fs ls --help"),
            ("cairn fs -usage", "cairn fs --help"),
            ("cairn --conf", "cairn --conf"),
            ("cairn", "cairn"),
        ] {
            let words = given.split(' ').map(OsString::from).collect();
            let wanted: Vec<OsString> = wanted.split(' ').map(OsString::from).collect();
            assert_eq!(understood(words), wanted, "{given}");
        }
    }
}
