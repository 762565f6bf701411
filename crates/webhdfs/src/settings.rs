//! What an operator can set. Defaults are Hadoop's.

use cairn_net::http::Request;
use regex_lite::Regex;

use crate::failure::Failure;

/// Settings that all roles have.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What `hdfs://` URIs of the file system have for an authority. `fs.defaultFS`.
    pub authority: String,
    /// The folder of users' homes. `dfs.user.home.dir.prefix`.
    pub homes: String,
    /// Who asks when a request does not say it. `hadoop.http.staticuser.user`.
    pub default_user: String,
    /// What users may be called. `dfs.webhdfs.user.provider.user.pattern`.
    pub user_pattern: Pattern,
    /// How access control lists are written. `dfs.webhdfs.acl.provider.permission.pattern`.
    pub acl_pattern: Pattern,
    /// Copies of a file where a request does not say how many. `dfs.replication`.
    pub replication: u16,
    /// Whether who asks has to show who that is, by a ticket or a delegation token. With Kerberos.
    pub asks_proof: bool,
    /// Requests that browsers make for others are refused, if this is there. `dfs.webhdfs.rest-csrf.enabled`.
    pub csrf: Option<Csrf>,
}

/// What a parameter may be.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// As Java writes it.
    shown: String,
}

impl Pattern {
    /// The pattern of an expression. `None` if it is none.
    pub fn new(text: &str) -> Option<Pattern> {
        // Java alone knows classes of characters in classes.
        let plain = text.replace("[[A-Za-z_][A-Za-z0-9._-]]", "[A-Za-z0-9._-]");
        Some(Pattern { regex: Regex::new(&plain).ok()?, shown: text.to_string() })
    }

    /// Fails as Hadoop does, if a parameter is not so.
    pub(crate) fn check(&self, name: &str, value: &str) -> Result<(), Failure> {
        if self.regex.is_match(value) {
            return Ok(());
        }
        let domain = format!("does not belong to the domain {}", self.shown);
        Err(Failure::param(name, format!("Invalid value: \"{value}\" {domain}")))
    }
}

const USERS: &str = "^[A-Za-z_][A-Za-z0-9._-]*[$]?$";

const ACLS: &str = "^(default:)?(user|group|mask|other):[[A-Za-z_][A-Za-z0-9._-]]*:([rwx-]{3})?\
    (,(default:)?(user|group|mask|other):[[A-Za-z_][A-Za-z0-9._-]]*:([rwx-]{3})?)*$";

impl Settings {
    /// Hadoop's defaults for a file system.
    pub fn new(authority: &str) -> Settings {
        let pattern = |text| Pattern::new(text).expect("a constant");
        Settings {
            authority: authority.to_string(),
            homes: "/user".to_string(),
            default_user: "dr.who".to_string(),
            user_pattern: pattern(USERS),
            acl_pattern: pattern(ACLS),
            replication: 3,
            asks_proof: false,
            csrf: None,
        }
    }
}

/// Refuses what a page of another site makes a browser ask for.
///
/// Source: Hadoop 3.5.0 `RestCsrfPreventionFilter`.
#[derive(Clone, Debug)]
pub struct Csrf {
    /// The header that such a page cannot send. `dfs.webhdfs.rest-csrf.custom-header`.
    pub header: String,
    /// Methods that need none. `dfs.webhdfs.rest-csrf.methods-to-ignore`.
    pub ignored_methods: Vec<String>,
    /// What browsers call themselves. `dfs.webhdfs.rest-csrf.browser-useragents-regex`.
    pub browsers: Vec<Regex>,
}

impl Default for Csrf {
    fn default() -> Csrf {
        Csrf {
            header: "X-XSRF-HEADER".to_string(),
            ignored_methods: ["GET", "OPTIONS", "HEAD", "TRACE"].map(str::to_string).to_vec(),
            browsers: ["^Mozilla.*", "^Opera.*"]
                .map(|text| Regex::new(text).expect("a constant"))
                .to_vec(),
        }
    }
}

impl Csrf {
    pub(crate) fn lets_in(&self, request: &Request) -> bool {
        let agent = request.headers.get("user-agent").and_then(|agent| agent.to_str().ok());
        let is_browser =
            agent.is_some_and(|agent| self.browsers.iter().any(|browser| browser.is_match(agent)));
        !is_browser
            || self.ignored_methods.iter().any(|method| method == request.method.as_str())
            || request.headers.contains_key(self.header.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::http::Method;

    #[test]
    fn only_browsers_need_the_header_and_only_to_change_something() {
        let csrf = Csrf::default();
        for (method, agent, has_header, is_let_in) in [
            (Method::PUT, "Mozilla/5.0", false, false),
            (Method::PUT, "Mozilla/5.0", true, true),
            (Method::GET, "Mozilla/5.0", false, true),
            (Method::DELETE, "Opera/9", false, false),
            (Method::PUT, "curl/8", false, true),
        ] {
            let mut request = Request::new(method, "/").unwrap();
            request.headers.insert("user-agent", agent.parse().unwrap());
            if has_header {
                request.headers.insert("x-xsrf-header", "".parse().unwrap());
            }
            assert_eq!(csrf.lets_in(&request), is_let_in, "{request:?}");
        }
    }

    #[test]
    fn patterns_are_hadoops() {
        let settings = Settings::new("nn:8020");
        for (user, fits) in
            [("ann", true), ("a.b-c$", true), ("1a", false), ("a b", false), ("", false)]
        {
            assert_eq!(settings.user_pattern.check("u", user).is_ok(), fits, "{user}");
        }
        for (acl, fits) in [
            ("user::rwx,default:group:a-b:r--", true),
            ("user:ann:,mask::", true),
            ("user:ann", false),
            ("users:ann:rwx", false),
        ] {
            assert_eq!(settings.acl_pattern.check("a", acl).is_ok(), fits, "{acl}");
        }
    }
}
