//! Words of the command line before they are parsed.
//!
//! `crypto`, `ec` and `fsck` take all that is behind them as options of the command of `hdfs` of that name. What every
//! command takes may stand there too.

use std::ffi::OsString;

/// The options of every command that a value follows.
const VALUED: [&str; 4] = ["--conf", "--fs", "--log", "-D"];
/// The commands with words of their own.
const WORDY: [&str; 3] = ["crypto", "ec", "fsck"];

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

/// Moves the options of every command before `crypto`, `ec` or `fsck`, where they are behind it.
pub fn options_first(words: Vec<OsString>) -> Vec<OsString> {
    let length_at = |at: usize| words.get(at).and_then(|word| word.to_str()).map_or(0, length);
    let mut command = 1;
    while length_at(command) > 0 {
        command += length_at(command);
    }
    let is_wordy = |word: &OsString| WORDY.iter().any(|name| word == name);
    if !words.get(command).is_some_and(is_wordy) {
        return words;
    }
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
            ("cairn --conf", "cairn --conf"),
            ("cairn", "cairn"),
        ] {
            let words = given.split(' ').map(OsString::from).collect();
            let wanted: Vec<OsString> = wanted.split(' ').map(OsString::from).collect();
            assert_eq!(options_first(words), wanted, "{given}");
        }
    }
}
