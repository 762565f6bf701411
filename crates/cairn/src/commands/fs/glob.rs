//! Wildcards in paths: `*`, `?`, `[a-z]`, `[^a-z]`, `{one,two}`, and `\` before what stands for itself.
//!
//! Source: Hadoop 3.5.0 `Globber`, `GlobPattern`, `GlobExpander`.

use super::paths::below;
use anyhow::{Context, Result, bail};
use cairn_client::{FileStatus, FileSystem};
use regex_lite::Regex;

/// Most paths that braces may make of one.
const MAX_ALTERNATIVES: usize = 10_000;

/// Whether a path has a sign with a meaning of its own.
pub fn has_wildcards(path: &str) -> bool {
    path.contains(['*', '?', '[', '{', '\\'])
}

/// All that fits a pattern, in the order of names for each of its alternatives.
pub async fn expand(fs: &FileSystem, pattern: &str) -> Result<Vec<FileStatus>> {
    let mut found = Vec::new();
    for path in alternatives(pattern)? {
        for status in one(fs, &path).await? {
            if !found.iter().any(|have: &FileStatus| have.path == status.path) {
                found.push(status);
            }
        }
    }
    Ok(found)
}

/// All that fits a pattern that has no slash in braces.
async fn one(fs: &FileSystem, pattern: &str) -> Result<Vec<FileStatus>> {
    let names: Vec<&str> = pattern.split('/').filter(|name| !name.is_empty()).collect();
    let mut found: Vec<FileStatus> = fs.file_info("/").await?.into_iter().collect();
    for (at, name) in names.iter().enumerate() {
        let mut next = Vec::new();
        let is_plain = !has_wildcards(name);
        let regex = if is_plain { None } else { Some(regex(name)?) };
        for parent in found.iter().filter(|status| status.is_dir()) {
            match &regex {
                // What is on the way and cannot be seen may lead somewhere all the same.
                None if at + 1 < names.len() => {
                    let path = below(&parent.path, name);
                    next.push(FileStatus { path, ..parent.clone() });
                }
                None => next.extend(look(fs, &below(&parent.path, name)).await?),
                Some(regex) => {
                    if parent_is_there(fs, parent).await? {
                        let listed = fs.list(&parent.path).collect().await?;
                        next.extend(listed.into_iter().filter(|s| regex.is_match(s.name())));
                    }
                }
            }
        }
        found = next;
    }
    Ok(found)
}

/// What a path names; nothing also where it leads through a file.
async fn look(fs: &FileSystem, path: &str) -> Result<Option<FileStatus>> {
    match fs.file_info(path).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
        told => Ok(told?),
    }
}

async fn parent_is_there(fs: &FileSystem, parent: &FileStatus) -> Result<bool> {
    Ok(look(fs, &parent.path).await?.is_some_and(|status| status.is_dir()))
}

/// The paths that braces with a slash in them stand for; other braces stay.
fn alternatives(pattern: &str) -> Result<Vec<String>> {
    let (mut waiting, mut done) = (vec![pattern.to_string()], Vec::new());
    while let Some(path) = waiting.pop() {
        if waiting.len() + done.len() > MAX_ALTERNATIVES {
            bail!("{pattern}: stands for too many paths");
        }
        match outer_braces(&path)? {
            None => done.push(path),
            Some((start, choices, end)) => {
                let with = |choice: &&str| format!("{}{choice}{}", &path[..start], &path[end..]);
                waiting.extend(choices.iter().rev().map(with));
            }
        }
    }
    Ok(done)
}

/// The first braces of a path that hold a slash: where they begin, what is in them, and where they end.
fn outer_braces(path: &str) -> Result<Option<(usize, Vec<&str>, usize)>> {
    let (mut depth, mut start, mut from, mut choices) = (0_usize, 0, 0, Vec::new());
    let mut is_escaped = false;
    for (at, sign) in path.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => {
                depth += 1;
                if depth == 1 {
                    (start, from) = (at, at + 1);
                    choices.clear();
                }
            }
            ',' if depth == 1 => {
                choices.push(&path[from..at]);
                from = at + 1;
            }
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    choices.push(&path[from..at]);
                    if choices.iter().any(|choice| choice.contains('/')) {
                        return Ok(Some((start, choices, at + 1)));
                    }
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        bail!("{path}: a brace is not closed");
    }
    Ok(None)
}

/// What a name must be like.
pub fn regex(pattern: &str) -> Result<Regex> {
    let mut text = String::from("^");
    let (mut depth, mut is_set) = (0_usize, false);
    let mut signs = pattern.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => {
                let literal = signs.next().with_context(|| format!("{pattern}: ends with \\"))?;
                text.push_str(&regex_lite::escape(&literal.to_string()));
            }
            ']' if is_set => {
                is_set = false;
                text.push(']');
            }
            '-' if is_set => text.push('-'),
            _ if is_set => text.push_str(&regex_lite::escape(&sign.to_string())),
            '*' => text.push_str(".*"),
            '?' => text.push('.'),
            '[' => {
                is_set = true;
                text.push('[');
                if signs.next_if(|sign| "^!".contains(*sign)).is_some() {
                    text.push('^');
                }
            }
            '{' => {
                depth += 1;
                text.push_str("(?:");
            }
            ',' if depth > 0 => text.push('|'),
            '}' if depth > 0 => {
                depth -= 1;
                text.push(')');
            }
            _ => text.push_str(&regex_lite::escape(&sign.to_string())),
        }
    }
    if depth > 0 || is_set {
        bail!("{pattern}: a bracket or a brace is not closed");
    }
    text.push('$');
    Regex::new(&format!("(?s){text}")).with_context(|| format!("{pattern}: is no pattern"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_those_of_hadoop() {
        for (pattern, fits, fits_not) in [
            ("*", "abc", ""),
            ("a*c", "abbc", "abb"),
            ("b?g", "big", "bg"),
            ("[a-c]x", "bx", "dx"),
            ("[^a-c]x", "dx", "bx"),
            ("{one,tw*}.txt", "two.txt", "three.txt"),
            ("a.b+", "a.b+", "axb"),
            (r"a\*", "a*", "ab"),
            ("[a*]", "*", "b"),
            ("{a,b{c,d}}e", "bde", "be"),
        ] {
            let regex = regex(pattern).unwrap();
            assert!(regex.is_match(fits), "{pattern} {fits}");
            assert!(fits_not.is_empty() || !regex.is_match(fits_not), "{pattern} {fits_not}");
        }
        for wrong in ["{", "[a", "a\\"] {
            assert!(regex(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn braces_with_slashes_are_paths_of_their_own() {
        let made = |pattern: &str| alternatives(pattern).unwrap().join(" ");
        assert_eq!(made("/{a/b,c}/{d,e}"), "/a/b/{d,e} /c/{d,e}");
        assert_eq!(made("/{a,b}/c"), "/{a,b}/c");
        assert_eq!(made("/x{/a,/b{/c,/d}}"), "/x/a /x/b/c /x/b/d");
        assert!(alternatives("/{a").is_err());
    }
}
