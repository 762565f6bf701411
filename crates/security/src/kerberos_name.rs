//! Kerberos principals, and which users they stand for (`hadoop.security.auth_to_local`).
//!
//! Source: Hadoop 3.5.0 `KerberosName`, `SecurityUtil#getServerPrincipal`.

use std::borrow::Cow;

use regex_lite::Regex;

use crate::SaslError;

/// Longest name that is looked at: the time that a rule takes grows with it.
const NAME_MAX: usize = 1024;

/// A principal in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosName {
    /// The first part: a user, or what a server is.
    pub service: String,
    /// The second part: a server's host, as a rule.
    pub host: Option<String>,
    /// What follows the `@`.
    pub realm: Option<String>,
}

impl KerberosName {
    /// The parts of `first/second@REALM`, of which the last two may be left out.
    pub fn parse(name: &str) -> Result<KerberosName, SaslError> {
        let (parts, realm) = match name.split_once('@') {
            Some((parts, realm)) => (parts, Some(realm)),
            None => (name, None),
        };
        let (service, host) = match parts.split_once('/') {
            Some((service, host)) => (service, Some(host)),
            None => (parts, None),
        };
        let is_part = |part: &str| !part.is_empty() && !part.contains(['/', '@']);
        let are_parts = is_part(service) && host.is_none_or(is_part) && realm.is_none_or(is_part);
        if name.len() > NAME_MAX || !are_parts {
            return Err(SaslError(format!("Malformed Kerberos name: {name}")));
        }
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Ok(KerberosName { service: service.to_owned(), host: owned(host), realm: owned(realm) })
    }

    /// Whether a principal is a configured one; with `_HOST` that of any host.
    pub fn is_one_of(principal: &str, configured: &str) -> bool {
        let parsed = KerberosName::parse(principal).ok().zip(KerberosName::parse(configured).ok());
        parsed.is_some_and(|(name, wanted)| {
            let is_host = wanted.host.as_deref() == Some("_HOST") && name.host.is_some();
            name.service == wanted.service
                && name.realm == wanted.realm
                && (is_host || name.host == wanted.host)
        })
    }
}

/// A principal from the configuration: `_HOST` is that host's name, in small letters.
pub fn server_principal(configured: &str, host: &str) -> String {
    match configured.split_once("/_HOST@") {
        Some((service, realm)) => format!("{service}/{}@{realm}", host.to_ascii_lowercase()),
        None => configured.to_owned(),
    }
}

/// Rules that turn principals into users. The first that applies counts.
#[derive(Clone, Debug)]
pub struct NameRules {
    rules: Vec<Rule>,
    default_realm: String,
    /// Whether users may have `/` and `@` in their names (`hadoop.security.auth_to_local.mechanism` is `mit`).
    is_mit: bool,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Principals of the default realm stand for their first part.
    Default { lower: bool },
    Made {
        /// How many parts the principal has.
        parts: usize,
        /// What is made of it, with `$0` for the realm and `$1` for the first part.
        format: String,
        /// What that must be as a whole.
        must: Option<Regex>,
        /// What is replaced by what, everywhere or once.
        replaced: Option<(Regex, String, bool)>,
        lower: bool,
    },
}

impl NameRules {
    /// Reads rules; of none, [`Rule::Default`] alone.
    pub fn parse(text: &str, default_realm: &str, is_mit: bool) -> Result<NameRules, SaslError> {
        let mut rules = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (rule, behind) = rule(rest)?;
            rules.push(rule);
            rest = behind.trim_start();
        }
        if rules.is_empty() {
            rules.push(Rule::Default { lower: false });
        }
        Ok(NameRules { rules, default_realm: default_realm.to_owned(), is_mit })
    }

    /// The user that a principal stands for.
    ///
    /// Source: Hadoop 3.5.0 `KerberosName#getShortName`.
    pub fn user_of(&self, principal: &str) -> Result<String, SaslError> {
        let name = match KerberosName::parse(principal) {
            Ok(name) => name,
            // Without a realm anything is a user.
            Err(_) if !principal.contains('@') && !principal.is_empty() => {
                return Ok(principal.to_owned());
            }
            Err(error) => return Err(error),
        };
        let mut parts = vec![name.realm.as_deref().unwrap_or_default(), name.service.as_str()];
        parts.extend(name.host.as_deref());
        if name.realm.is_none() && name.host.is_none() {
            return Ok(name.service);
        }
        for rule in &self.rules {
            if let Some(user) = self.apply(rule, &parts)? {
                return Ok(user);
            }
        }
        match self.is_mit {
            true => Ok(principal.to_owned()),
            false => Err(SaslError(format!("No rules applied to {principal}"))),
        }
    }

    fn apply(&self, rule: &Rule, parts: &[&str]) -> Result<Option<String>, SaslError> {
        let (user, lower) = match rule {
            Rule::Default { lower } => {
                if parts[0] != self.default_realm {
                    return Ok(None);
                }
                (parts[1].to_owned(), *lower)
            }
            Rule::Made { parts: count, format, must, replaced, lower } => {
                if parts.len() - 1 != *count {
                    return Ok(None);
                }
                let made = fill(format, parts)?;
                if must.as_ref().is_some_and(|must| !must.is_match(&made)) {
                    return Ok(None);
                }
                let user = match replaced {
                    None => made,
                    Some((from, to, true)) => from.replace_all(&made, to.as_str()).into_owned(),
                    Some((from, to, false)) => from.replace(&made, to.as_str()).into_owned(),
                };
                (user, *lower)
            }
        };
        if !self.is_mit && user.contains(['/', '@']) {
            return Err(SaslError(format!("Non-simple name {user} after auth_to_local rule")));
        }
        if user.is_empty() {
            return Err(SaslError::new("No name is left after an auth_to_local rule"));
        }
        Ok(Some(if lower { user.to_lowercase() } else { user }))
    }
}

/// A format with parts in the places of `$0`, `$1` and `$2`.
fn fill(format: &str, parts: &[&str]) -> Result<String, SaslError> {
    let mut out = String::new();
    let mut pieces = format.split('$');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|char: char| !char.is_ascii_digit()).unwrap_or(piece.len());
        let number = piece[..end].parse::<usize>().ok();
        let part = number.and_then(|number| parts.get(number));
        let wrong = || SaslError(format!("bad format in auth_to_local rule: {format}"));
        out.push_str(part.ok_or_else(wrong)?);
        out.push_str(&piece[end..]);
    }
    Ok(out)
}

/// The first rule of a text, and what follows it.
///
/// Source: Hadoop 3.5.0 `KerberosName#ruleParser`.
fn rule(text: &str) -> Result<(Rule, &str), SaslError> {
    let wrong = || SaslError(format!("Invalid rule: {text}"));
    if let Some(rest) = text.strip_prefix("DEFAULT") {
        let (lower, rest) = lower(rest);
        return Ok((Rule::Default { lower }, rest));
    }
    let rest = text.strip_prefix("RULE:[").ok_or_else(wrong)?;
    let (count, rest) = rest.split_once(':').ok_or_else(wrong)?;
    let parts = count.parse().map_err(|_| wrong())?;
    let (format, rest) = rest.split_once(']').ok_or_else(wrong)?;
    let (must, rest) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (must, rest) = rest.split_once(')').ok_or_else(wrong)?;
            (Some(regex(&format!("^(?:{must})$"))?), rest)
        }
        None => (None, rest),
    };
    let (replaced, rest) = match rest.strip_prefix("s/") {
        Some(rest) => {
            let (from, rest) = rest.split_once('/').ok_or_else(wrong)?;
            let (to, rest) = rest.split_once('/').ok_or_else(wrong)?;
            let (everywhere, rest) = match rest.strip_prefix('g') {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            (Some((regex(from)?, replacement(to), everywhere)), rest)
        }
        None => (None, rest),
    };
    let (lower, rest) = lower(rest);
    Ok((Rule::Made { parts, format: format.to_owned(), must, replaced, lower }, rest))
}

/// Whether names become small letters.
fn lower(text: &str) -> (bool, &str) {
    let behind = text.strip_prefix('/').unwrap_or(text);
    match behind.strip_prefix('L') {
        Some(rest) => (true, rest),
        None => (false, behind),
    }
}

/// A replacement as Java writes it: `$1` is a group, and what follows its number is text.
fn replacement(java: &str) -> String {
    let (mut out, mut chars) = (String::new(), java.chars().peekable());
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                other => out.extend(other),
            },
            '$' => {
                let mut number = String::new();
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                out.push_str(&format!("${{{number}}}"));
            }
            other => out.push(other),
        }
    }
    out
}

fn regex(text: &str) -> Result<Regex, SaslError> {
    let text: Cow<'_, str> = text.into();
    Regex::new(&text).map_err(|error| SaslError(format!("{text} in auth_to_local: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn user(rules: &str, principal: &str) -> Result<String, String> {
        let rules = NameRules::parse(rules, "EXAMPLE.COM", false).map_err(|error| error.0)?;
        rules.user_of(principal).map_err(|error| error.0)
    }

    #[test]
    fn names_have_parts() {
        let parts = |name: &str| {
            let name = KerberosName::parse(name).ok()?;
            Some((name.service, name.host.unwrap_or_default(), name.realm.unwrap_or_default()))
        };
        let owned = |a: &str, b: &str, c: &str| Some((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(parts("nn/host.x@R.X"), owned("nn", "host.x", "R.X"));
        assert_eq!(parts("ann@R"), owned("ann", "", "R"));
        assert_eq!(parts("ann"), owned("ann", "", ""));
        for wrong in ["", "@R", "a/@R", "a/b/c@R", "a@b@c", "a@", "/b@R", &"a".repeat(1025)] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn host_is_put_in() {
        assert_eq!(server_principal("nn/_HOST@R", "Host.X"), "nn/host.x@R");
        assert_eq!(server_principal("nn/other@R", "host"), "nn/other@R");
    }

    #[test]
    fn the_default_rule_takes_the_default_realm_alone() {
        assert_eq!(user("", "ann@EXAMPLE.COM"), Ok("ann".into()));
        assert_eq!(user("DEFAULT", "nn/host@EXAMPLE.COM"), Ok("nn".into()));
        assert_eq!(user("DEFAULT/L", "ANN@EXAMPLE.COM"), Ok("ann".into()));
        assert_eq!(user("", "ann"), Ok("ann".into()));
        let none = Err("No rules applied to ann@OTHER".into());
        assert_eq!(user("DEFAULT", "ann@OTHER"), none);
    }

    #[test]
    fn rules_are_hadoops() {
        let rules = "RULE:[1:$1@$0](.*@OTHER)s/@.*//\n\
             RULE:[2:$1;$2](^.*;admin$)s/;admin$//\n\
             RULE:[2:$1@$0](nn@EXAMPLE.COM)s/.*/hdfs/ RULE:[1:$1@$0](.*@UP)s/([^@]*)@.*/x$1y//L\n\
             RULE:[1:$1@$0](.*@G)s/[ao]/_/g\nDEFAULT";
        for (principal, expected) in [
            ("ann@OTHER", "ann"),
            ("bob/admin@OTHER", "bob"),
            ("nn/host@EXAMPLE.COM", "hdfs"),
            ("ANN@UP", "xanny"),
            ("dn/host@EXAMPLE.COM", "dn"),
        ] {
            assert_eq!(user(rules, principal), Ok(expected.into()), "{principal}");
        }
        assert!(user(rules, "anno@G").unwrap_err().starts_with("Non-simple name _nn_@G"));
        assert!(user(rules, "x/y@OTHER").unwrap_err().starts_with("No rules applied"));
        for wrong in ["RULE", "RULE:[1:$1", "RULE:[x:$1]", "RULE:[1:$1](", "RULE:[1:$1](a]", "x"] {
            assert!(user(wrong, "ann@EXAMPLE.COM").is_err(), "{wrong}");
        }
        assert!(user("RULE:[1:$7]", "ann@EXAMPLE.COM").is_err());
        assert!(user("RULE:[1:]", "ann@EXAMPLE.COM").is_err());
    }

    #[test]
    fn mit_keeps_what_no_rule_takes() {
        let rules = NameRules::parse("DEFAULT", "EXAMPLE.COM", true).unwrap();
        assert_eq!(rules.user_of("ann@OTHER").unwrap(), "ann@OTHER");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(rules: String, principal: String) {
            let _ = user(&rules, &principal);
            let _ = user("RULE:[1:$1@$0](.*)s/(a*)*b/x/g DEFAULT", &principal);
        }
    }
}
