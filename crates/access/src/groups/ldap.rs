//! Groups of users, asked of an LDAP server.
//!
//! A user's entry is searched for, then the groups that name it, and if wanted the groups that name those. Each look-up
//! has a connection of its own: the cache in front of it lets few through.
//!
//! Source: Hadoop 3.5.0 `LdapGroupsMapping`.

use std::fmt;
use std::io;
use std::time::Duration;

use cairn_keys::{Kind, MILLIS, TEXT, keys, number, positive, value};
use cairn_security::ldap::{self, Entry, LdapError, Said, Search, encode_filter, filled};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use cairn_net::tls::TlsTrust;

/// Entries that are looked at in one answer.
const ENTRIES_MAX: usize = 10_000;
/// How many groups the groups that name them are asked for at a time, and how far up at most.
const ASKED_AT_ONCE: usize = 200;
const LEVELS_MAX: u32 = 64;

const URLS: Kind<Vec<String>> = Kind::new("ldap://host:port,ldaps://…", |text| {
    Ok(value::list(text).map(str::to_owned).collect())
});

keys! {
    /// Where groups are asked for by LDAP, and how; `Default` has Hadoop's defaults.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LdapConfig {
        /// LDAP servers, of which the next is asked when one does not answer.
        urls: Vec<String>, "hadoop.security.group.mapping.ldap.url" = "" as URLS;
        /// Whether they are asked by TLS from the first byte on, as those of `ldaps://` are.
        is_secure: bool, "hadoop.security.group.mapping.ldap.ssl" = "false" as cairn_keys::BOOLEAN;
        /// The name by which the LDAP server knows who asks; empty for nobody.
        bind_user: String, "hadoop.security.group.mapping.ldap.bind.user" = "" as TEXT;
        /// The entry below which users and groups are, where they have none of their own.
        base: String, "hadoop.security.group.mapping.ldap.base" = "" as TEXT;
        /// The entry below which users are.
        user_base: String, "hadoop.security.group.mapping.ldap.userbase" = "" as TEXT;
        /// The entry below which groups are.
        group_base: String, "hadoop.security.group.mapping.ldap.groupbase" = "" as TEXT;
        /// Finds the user named `{0}`.
        user_filter: String, "hadoop.security.group.mapping.ldap.search.filter.user"
            = "(&(objectClass=user)(sAMAccountName={0}))" as TEXT;
        /// Finds all groups. With `posixGroup` in it, and `posixAccount` in that of users, members are known by numbers.
        group_filter: String, "hadoop.security.group.mapping.ldap.search.filter.group"
            = "(objectClass=group)" as TEXT;
        /// The attribute of users that names their groups; empty to ask for the groups that name the user.
        memberof_attr: String, "hadoop.security.group.mapping.ldap.search.attr.memberof" = "" as TEXT;
        /// The attribute of groups that names their members.
        member_attr: String, "hadoop.security.group.mapping.ldap.search.attr.member" = "member" as TEXT;
        /// The attribute of groups that has their name.
        name_attr: String, "hadoop.security.group.mapping.ldap.search.attr.group.name" = "cn" as TEXT;
        /// How far up groups of groups are asked for.
        levels: u32, "hadoop.security.group.mapping.ldap.search.group.hierarchy.levels" = "0" as number();
        /// The attribute of users by which groups of POSIX name them.
        posix_uid_attr: String, "hadoop.security.group.mapping.ldap.posix.attr.uid.name" = "uidNumber" as TEXT;
        /// The attribute of users and groups with the number of the group.
        posix_gid_attr: String, "hadoop.security.group.mapping.ldap.posix.attr.gid.name" = "gidNumber" as TEXT;
        /// How long an LDAP server may search.
        search_timeout: Duration, "hadoop.security.group.mapping.ldap.directory.search.timeout" = "10000" as MILLIS;
        /// How long connecting to one may take.
        connect_timeout: Duration, "hadoop.security.group.mapping.ldap.connection.timeout.ms" = "60000" as MILLIS;
        /// How long it may send nothing.
        read_timeout: Duration, "hadoop.security.group.mapping.ldap.read.timeout.ms" = "60000" as MILLIS;
        /// How often a look-up is tried.
        attempts: u32, "hadoop.security.group.mapping.ldap.num.attempts" = "3" as positive();
    }
    parts {}
    by_hand {
        /// The password of `hadoop.security.group.mapping.ldap.bind.user`.
        "hadoop.security.group.mapping.ldap.bind.password" = "" as "text";
        /// The file that has it, which goes after it.
        "hadoop.security.group.mapping.ldap.bind.password.file" = "" as "path";
    }
    others {
        /// The password of `bind_user`.
        password: Password = Password::default();
        /// Whom to trust, for servers that are asked by TLS.
        trust: Option<TlsTrust> = None;
    }
}

/// A password, which does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// A server, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    host: String,
    port: u16,
    is_secure: bool,
}

impl LdapConfig {
    /// Whether a server is asked by TLS.
    pub fn asks_by_tls(&self) -> bool {
        self.urls.iter().any(|url| self.server(url).is_some_and(|server| server.is_secure))
    }

    /// Why nobody could be asked so; `None` where there is no fault.
    pub fn fault(&self) -> Option<String> {
        if self.urls.is_empty() {
            return Some("hadoop.security.group.mapping.ldap.url names no server".to_owned());
        }
        if let Some(url) = self.urls.iter().find(|url| self.server(url).is_none()) {
            return Some(format!("{url} is no ldap://HOST:PORT or ldaps://HOST:PORT"));
        }
        let filters =
            [filled(&self.user_filter, &["user"]), self.groups_of(&[&self.member_attr], &["x"])];
        filters.iter().find_map(|filter| encode_filter(filter).err()).map(|error| error.to_string())
    }

    fn server(&self, url: &str) -> Option<Server> {
        let (scheme, rest) = url.split_once("://")?;
        let is_secure = match scheme {
            "ldap" => self.is_secure,
            "ldaps" => true,
            _ => return None,
        };
        let rest = rest.split('/').next()?;
        let usual = if scheme == "ldaps" { 636 } else { 389 };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (rest, usual),
        };
        (!host.is_empty()).then(|| Server { host: host.to_owned(), port, is_secure })
    }

    fn base_of<'a>(&'a self, own: &'a str) -> &'a str {
        if own.is_empty() { &self.base } else { own }
    }

    /// A filter that finds the groups of which one of these attributes has one of these values.
    fn groups_of(&self, attributes: &[&str], values: &[&str]) -> String {
        let mut any = String::new();
        for attribute in attributes {
            for value in values {
                any.push_str(&filled(&format!("({attribute}={{0}})"), &[value]));
            }
        }
        format!("(&{}(|{any}))", self.group_filter)
    }

    /// Whether members are known by their numbers.
    fn is_posix(&self) -> bool {
        self.group_filter.contains("posixGroup") && self.user_filter.contains("posixAccount")
    }

    /// The groups of a user, each once; none for one that is not there. Each server is asked in its turn.
    pub(super) async fn groups(&self, user: &str) -> io::Result<Vec<String>> {
        let mut failure = None;
        for attempt in 0..self.attempts {
            let url = &self.urls[attempt as usize % self.urls.len()];
            let Some(server) = self.server(url) else { continue };
            match self.groups_from(&server, user).await {
                Ok(groups) => return Ok(groups),
                Err(error) => {
                    tracing::debug!(url, user, %error, "an LDAP server has not told the groups of a user");
                    failure = Some(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| io::Error::other("no LDAP server is named")))
    }

    async fn groups_from(&self, server: &Server, user: &str) -> io::Result<Vec<String>> {
        let connect = async {
            let stream =
                TcpStream::connect((server.host.trim_matches(['[', ']']), server.port)).await?;
            let stream: Box<dyn Socket> = match (server.is_secure, &self.trust) {
                (false, _) => Box::new(stream),
                (true, Some(trust)) => Box::new(trust.connect(&server.host, stream).await?),
                (true, None) => return Err(io::Error::other("no LDAP server is trusted by TLS")),
            };
            Ok(stream)
        };
        let stream = timeout(self.connect_timeout, connect).await??;
        let mut directory = Directory { stream, config: self, read: Vec::new(), id: 0 };
        directory.bind().await?;
        let groups = directory.groups(user).await;
        directory.end().await;
        groups
    }
}

/// What an LDAP server is spoken to over.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// A conversation with a server.
struct Directory<'a> {
    stream: Box<dyn Socket>,
    config: &'a LdapConfig,
    /// What has come and is not looked at yet.
    read: Vec<u8>,
    /// Of the last request.
    id: u32,
}

fn failed(error: LdapError) -> io::Error {
    io::Error::other(error)
}

impl Directory<'_> {
    async fn bind(&mut self) -> io::Result<()> {
        let config = self.config;
        self.id += 1;
        let request = ldap::bind(self.id, &config.bind_user, &config.password.0);
        self.stream.write_all(&request).await?;
        match self.next().await? {
            Said::Bound => Ok(()),
            _ => Err(failed(LdapError::Malformed)),
        }
    }

    /// A server that is not told so closes the connection by itself.
    async fn end(&mut self) {
        self.id += 1;
        let _ = self.stream.write_all(&ldap::unbind(self.id)).await;
        let _ = self.stream.shutdown().await;
    }

    async fn groups(&mut self, user: &str) -> io::Result<Vec<String>> {
        let config = self.config;
        let filter = filled(&config.user_filter, &[user]);
        let wanted = [&config.memberof_attr, &config.posix_uid_attr, &config.posix_gid_attr];
        let wanted: Vec<&str> =
            wanted.into_iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let base = config.base_of(&config.user_base);
        let Some(found) = self.search(base, &filter, &wanted, 1).await?.into_iter().next() else {
            return Ok(Vec::new());
        };
        let mut known = Known::default();
        if !config.memberof_attr.is_empty() {
            for name in found.values(&config.memberof_attr) {
                known.add(first_value(name), name);
            }
        }
        if known.groups.is_empty() || config.levels > 0 {
            let filter = match config.is_posix() {
                false => config.groups_of(&[&config.member_attr], &[&found.name]),
                true => {
                    let first = |name: &str| found.values(name).next().map(str::to_owned);
                    let (uid, gid) = (first(&config.posix_uid_attr), first(&config.posix_gid_attr));
                    let (Some(uid), Some(gid)) = (uid, gid) else {
                        let told = "the user has not the attributes of the posix.attr keys";
                        return Err(io::Error::other(told));
                    };
                    let (members, number) = (&config.member_attr, &config.posix_gid_attr);
                    let any =
                        filled(&format!("(|({number}={{0}})({members}={{1}}))"), &[&gid, &uid]);
                    format!("(&{}{any})", config.group_filter)
                }
            };
            let mut new = self.named_groups(&filter, &mut known).await?;
            for _ in 0..config.levels.min(LEVELS_MAX) {
                if new.is_empty() || config.is_posix() {
                    break;
                }
                let mut above = Vec::new();
                for some in new.chunks(ASKED_AT_ONCE) {
                    let names: Vec<&str> = some.iter().map(String::as_str).collect();
                    let filter = config.groups_of(&[&config.member_attr], &names);
                    above.extend(self.named_groups(&filter, &mut known).await?);
                }
                new = above;
            }
        }
        Ok(known.groups)
    }

    /// Adds the groups that a filter finds. Gives the distinguished names of those that are new.
    async fn named_groups(&mut self, filter: &str, known: &mut Known) -> io::Result<Vec<String>> {
        let config = self.config;
        let wanted = [config.name_attr.as_str()];
        let base = config.base_of(&config.group_base);
        let mut new = Vec::new();
        for entry in self.search(base, filter, &wanted, 0).await? {
            let Some(name) = entry.values(&config.name_attr).next() else { continue };
            if known.add(Some(name.to_owned()), &entry.name) {
                new.push(entry.name);
            }
        }
        Ok(new)
    }

    async fn search(
        &mut self,
        base: &str,
        filter: &str,
        attributes: &[&str],
        entries_max: u32,
    ) -> io::Result<Vec<Entry>> {
        let filter = encode_filter(filter).map_err(failed)?;
        let seconds = self.config.search_timeout.as_millis().div_ceil(1000);
        let seconds_max = u32::try_from(seconds).unwrap_or(u32::MAX);
        self.id += 1;
        let wanted = Search { base, filter: &filter, attributes, entries_max, seconds_max };
        self.stream.write_all(&ldap::search(self.id, &wanted)).await?;
        let mut found = Vec::new();
        loop {
            match self.next().await? {
                Said::Found(entry) if found.len() < ENTRIES_MAX => found.push(entry),
                Said::Found(_) => {
                    return Err(io::Error::other("an LDAP server has found too much"));
                }
                Said::FoundAll => return Ok(found),
                Said::Other => {}
                Said::Bound => return Err(failed(LdapError::Malformed)),
            }
        }
    }

    /// What the server says next to the last request.
    async fn next(&mut self) -> io::Result<Said> {
        loop {
            let len = ldap::message_len(&self.read).map_err(failed)?;
            if let Some(len) = len.filter(|len| *len <= self.read.len()) {
                let message: Vec<u8> = self.read.drain(..len).collect();
                match ldap::read(&message).map_err(failed)? {
                    (id, said) if id == self.id => return Ok(said),
                    // A notice that it ends the connection, most likely.
                    (0, _) => return Err(io::ErrorKind::ConnectionReset.into()),
                    _ => return Err(failed(LdapError::Malformed)),
                }
            }
            let read = self.stream.read_buf(&mut self.read);
            if timeout(self.config.read_timeout, read).await?? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Groups that were found.
#[derive(Debug, Default)]
struct Known {
    groups: Vec<String>,
    /// Their distinguished names.
    names: Vec<String>,
}

impl Known {
    /// Whether the group is new.
    fn add(&mut self, group: Option<String>, name: &str) -> bool {
        let Some(group) = group.filter(|_| !self.names.iter().any(|known| known == name)) else {
            return false;
        };
        if !self.groups.contains(&group) {
            self.groups.push(group);
        }
        self.names.push(name.to_owned());
        true
    }
}

/// The value in the first part of a distinguished name, `staff` of `cn=staff,dc=x`.
///
/// Source: RFC 4514.
fn first_value(name: &str) -> Option<String> {
    let (_, rest) = name.split_once('=')?;
    let mut bytes = rest.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'+' => break,
            b'\\' => {
                let next = bytes.next()?;
                match char::from(next).to_digit(16) {
                    Some(high) => {
                        let low = char::from(bytes.next()?).to_digit(16)?;
                        out.push((high * 16 + low) as u8);
                    }
                    None => out.push(next),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
