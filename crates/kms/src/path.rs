//! Where the key servers are: the path of a key provider.

use std::fmt;
use std::str::FromStr;

/// The port of plain HTTP, for a path that names none. (The server's own default, 9600, is for the
/// server: `KMSClientProvider` leaves the port to the URL.)
const DEFAULT_PORT: u16 = 80;
/// More hosts than this are a mistake.
const MAX_HOSTS: usize = 64;

/// The path of a key provider, as `kms://http@host1;host2:9600/kms`.
///
/// One port is for all hosts. The text is kept as it was, for servers hand it to clients.
///
/// Source: Hadoop 3.5.0 `KMSClientProvider.Factory#createProvider`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderPath {
    text: String,
    hosts: Vec<String>,
    port: u16,
    base: String,
}

/// Why a text is no path of a key provider that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key provider {text}: {reason}")]
pub struct ProviderPathError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl ProviderPath {
    /// The hosts, in the order named; at least one.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The port of all hosts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the service is on each host: empty, or starting with `/` and without one at the end.
    pub fn base(&self) -> &str {
        &self.base
    }
}

impl fmt::Display for ProviderPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ProviderPath {
    type Err = ProviderPathError;

    fn from_str(text: &str) -> Result<ProviderPath, ProviderPathError> {
        let text = text.trim();
        let fail = |reason| ProviderPathError { text: text.to_string(), reason };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(fail("it is not of the form kms://http@HOST:PORT/kms"));
        };
        if scheme != "kms" {
            return Err(fail("only the scheme kms is supported"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let servers = match authority.split_once('@') {
            Some(("http", servers)) => servers,
            Some(("https", _)) => return Err(fail("https is not supported yet, only http")),
            _ => return Err(fail("it is not of the form kms://http@HOST:PORT/kms")),
        };
        let (hosts, port) = match servers.split_once(':') {
            None => (servers, DEFAULT_PORT),
            Some((hosts, port)) => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (hosts, port.ok_or_else(|| fail("its port is no number from 1 to 65535"))?)
            }
        };
        let hosts: Vec<String> = hosts.split(';').map(str::to_string).collect();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !hosts.iter().all(|host| !host.is_empty() && host.bytes().all(plain)) {
            return Err(fail("a name of a host is missing, or has a character that no name has"));
        }
        if hosts.len() > MAX_HOSTS {
            return Err(fail("it names too many hosts"));
        }
        let base = path.trim_end_matches('/');
        if !base.bytes().all(|byte| plain(byte) || b"/~%".contains(&byte)) {
            return Err(fail("its path has a character that it cannot have"));
        }
        Ok(ProviderPath { text: text.to_string(), hosts, port, base: base.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_found() {
        for (text, hosts, port, base) in [
            ("kms://http@kms:9600/kms", &["kms"][..], 9600, "/kms"),
            (" kms://http@a;b.c;10.0.0.1:9600/kms/ ", &["a", "b.c", "10.0.0.1"], 9600, "/kms"),
            ("kms://http@kms/kms", &["kms"], 80, "/kms"),
            ("kms://http@kms:1", &["kms"], 1, ""),
        ] {
            let path: ProviderPath = text.parse().unwrap();
            assert_eq!((path.hosts(), path.port(), path.base()), (&owned(hosts)[..], port, base));
            assert_eq!(path.to_string(), text.trim());
        }
    }

    fn owned(hosts: &[&str]) -> Vec<String> {
        hosts.iter().map(|host| host.to_string()).collect()
    }

    #[test]
    fn what_is_not_supported_is_refused_in_words() {
        for (text, reason) in [
            ("kms://https@kms:9600/kms", "https is not supported"),
            ("jceks://file/tmp/keys.jceks", "only the scheme kms"),
            ("kms", "not of the form"),
            ("kms://kms:9600/kms", "not of the form"),
            ("kms://http@kms:9600000/kms", "no number"),
            ("kms://http@kms:0/kms", "no number"),
            ("kms://http@:9600/kms", "host is missing"),
            ("kms://http@a;;b:9600/kms", "host is missing"),
            ("kms://http@a b:9600/kms", "host is missing"),
            ("kms://http@a:9600/k ms\r\n", "its path"),
        ] {
            let error = text.parse::<ProviderPath>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(format!("kms://http@{}a/kms", "a;".repeat(64)).parse::<ProviderPath>().is_err());
    }
}
