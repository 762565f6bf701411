//! The audit log: a line for each call of a client that names or changes something, in the form of Hadoop's.
//!
//! What a call is called there, and when it is told of, is in `audit/calls.rs`; the file in `audit/file.rs`.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem#logAuditEvent`, `FSNamesystemAuditLogger`.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_namespace::{Caller, query};
use cairn_net::date::Moment;
use cairn_net::rpc_server::{Authentication, Call};
use cairn_stripe::PolicyState;
use cairn_wire::exception::class;

use crate::clock::wall_ms;
use crate::config::{AuditConfig, NameNodeConfig};
use crate::journal::Namesystem;
use crate::ranger::{Decision, Tell};
use crate::refusal::{Answer, Refusal};
use calls::{Event, Stat, When};
use file::AuditFile;

mod calls;
mod file;

/// A log that is being written.
pub(crate) struct AuditLog {
    file: AuditFile,
    /// What is told.
    config: AuditConfig,
    /// Whether what clients say of themselves is. It can change.
    tells_context: AtomicBool,
}

/// What is to be told of a call that has begun.
pub(crate) struct Begun {
    events: Vec<Event>,
    /// Where a rename leads: into the directory that it names, if that is one.
    renamed: Option<String>,
    /// Nothing is told of it then, unless it is refused.
    changes_nothing: bool,
}

impl AuditLog {
    /// Opens the log, if there is to be one; it is appended to.
    pub(crate) fn open(config: &AuditConfig) -> io::Result<Option<AuditLog>> {
        let Some(path) = &config.file else { return Ok(None) };
        Ok(Some(AuditLog {
            file: AuditFile::open(path)?,
            config: config.clone(),
            tells_context: AtomicBool::new(config.caller_context),
        }))
    }

    /// Tells what clients say of themselves from now on, or does not.
    pub(crate) fn tell_context(&self, tells: bool) {
        self.tells_context.store(tells, Ordering::Relaxed);
    }

    /// Whether it does.
    pub(crate) fn tells_context(&self) -> bool {
        self.tells_context.load(Ordering::Relaxed)
    }

    fn is_silent(&self, command: &str) -> bool {
        self.config.silent_commands.iter().any(|silent| silent == command)
    }

    /// To be called before a call is handled.
    pub(crate) fn begin(&self, ns: &Namesystem, config: &NameNodeConfig, call: &Call) -> Begun {
        let mut events = calls::events(call);
        events.retain(|event| !self.is_silent(&event.command));
        if !config.storage_policies_superuser_only {
            // Then it is only by its path that a call can need a superuser.
            let sets = |event: &&mut Event| event.command.ends_with("etStoragePolicy");
            events.iter_mut().filter(sets).for_each(|event| event.denied = None);
        }
        let renamed = events.iter().find(|event| event.stat == Stat::Renamed);
        let renamed = renamed.and_then(|event| leads_to(ns, event));
        Begun { events, renamed, changes_nothing: changes_nothing(ns, call) }
    }

    /// Tells of a call that is answered.
    pub(crate) fn end(&self, ns: &Namesystem, call: &Call, begun: Begun, answer: &Answer) {
        if let ("getBatchedListing", Ok(body)) = (call.method.as_str(), answer) {
            let listed = calls::listed(call, body);
            let told = listed.iter().filter(|(event, _)| !self.is_silent(&event.command));
            told.for_each(|(event, allowed)| self.write(call, *allowed, event, None));
        }
        for mut event in begun.events {
            let Some(allowed) = allowed(ns, &event, answer) else { continue };
            if allowed && begun.changes_nothing {
                continue;
            }
            if let Some(denied) = event.denied.take()
                && needs_superuser(answer)
            {
                (event.command, event.src) = (denied.command, denied.src);
            }
            if let (Stat::Created, Ok(body)) = (event.stat, answer) {
                event.dst = calls::string_field(body, 1);
            }
            let renamed = begun.renamed.as_deref();
            let told = if allowed { permissions(ns, &event, renamed, answer) } else { None };
            self.write(call, allowed, &event, told.as_deref());
        }
    }

    /// Tells of an `fsck`, which comes by HTTP.
    ///
    /// Source: Hadoop 3.5.0 `FsckServlet`.
    pub(crate) fn fsck(&self, allowed: bool, (user, by): (&str, &str), ip: IpAddr, src: &str) {
        const COMMAND: &str = "fsck";
        if self.is_silent(COMMAND) {
            return;
        }
        let mut line = begun(allowed, user, None, by, ip);
        let _ = write!(line, "\tcmd={COMMAND}\tsrc=");
        escape(&mut line, Some(src));
        line.push_str("\tdst=null\tperm=null\tproto=null\n");
        self.file.write(&line);
    }

    fn write(&self, call: &Call, allowed: bool, event: &Event, permissions: Option<&str>) {
        let user = &call.user;
        let (real, by) = (user.real.as_deref(), user.by.name());
        let mut line = begun(allowed, &user.effective, real, by, call.peer.ip());
        let _ = write!(line, "\tcmd={}\tsrc=", event.command);
        escape(&mut line, event.src.as_deref());
        line.push_str("\tdst=");
        escape(&mut line, event.dst.as_deref());
        // Owners are users, who called themselves what they liked.
        line.push_str("\tperm=");
        escape(&mut line, permissions);
        if self.config.tells_tokens {
            write_token(&mut line, &user.by);
        }
        let _ = write!(line, "\tproto={}", call.carrier);
        if self.tells_context() {
            self.write_context(&mut line, call);
        }
        line.push('\n');
        self.file.write(&line);
    }

    /// What the client says of itself, with its port if that is to be told.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#appendClientPortToCallerContextIfAbsent`, `FSNamesystemAuditLogger`.
    fn write_context(&self, line: &mut String, call: &Call) {
        let config = &self.config;
        let told = call.caller_context.as_ref();
        let mut context = told.map(|told| told.context.clone()).unwrap_or_default();
        if config.tells_ports {
            for (name, is_due) in [
                ("clientPort", !context.contains("clientPort")),
                ("proxyUserPort", context.contains("realUser")),
            ] {
                if is_due {
                    let separator = if context.is_empty() { "" } else { config.separator.as_str() };
                    let _ = write!(context, "{separator}{name}:{}", call.peer.port());
                }
            }
        }
        if context.is_empty() {
            return;
        }
        line.push_str("\tcallerContext=");
        let begin = line.len();
        escape(line, Some(&context));
        // What is escaped is ASCII.
        line.truncate(begin.saturating_add(config.caller_context_max));
        let signature = told.map(|told| &told.signature[..]).unwrap_or_default();
        if (1..=config.signature_max).contains(&signature.len()) {
            line.push(':');
            escape(line, Some(&String::from_utf8_lossy(signature)));
        }
    }
}

/// Deviation: Ranger's plugin sends such events elsewhere.
impl Tell for AuditLog {
    fn tell(&self, decision: &Decision<'_>) {
        const COMMAND: &str = "checkPolicy";
        if self.is_silent(COMMAND) {
            return;
        }
        let nowhere = (Authentication::Simple.name(), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let (by, ip) = decision.from.unwrap_or(nowhere);
        let mut line = begun(decision.allowed, decision.user, None, by, ip);
        let _ = write!(line, "\tcmd={COMMAND}\tsrc=");
        escape(&mut line, Some(decision.path));
        line.push_str("\tdst=null\tperm=");
        for (right, name) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            line.push(if decision.rights & right != 0 { name } else { '-' });
        }
        let _ = writeln!(line, "\tproto=ranger\tpolicy={}", decision.policy);
        self.file.write(&line);
    }
}

/// By which token somebody came in.
///
/// Source: Hadoop 3.5.0 `FSNamesystem.DefaultAuditLogger#logAuditMessage`.
/// Deviation: Hadoop does not tell the token's number, by which it names it where one is issued, renewed or cancelled.
fn write_token(line: &mut String, by: &Authentication) {
    let Authentication::Token(Some(name)) = by else {
        line.push_str("\ttrackingId=null");
        return;
    };
    line.push_str("\ttrackingId=");
    escape(line, Some(&name.tracking_id));
    let _ = write!(line, "\ttoken={}", name.number);
}

/// A line as far as the address of who asked.
fn begun(allowed: bool, user: &str, real: Option<&str>, by: &str, ip: IpAddr) -> String {
    let mut line = format!("{} INFO FSNamesystem.audit: ", Moment::of_ms(wall_ms()));
    let _ = write!(line, "allowed={allowed}\tugi=");
    // Users call themselves what they like.
    escape(&mut line, Some(user));
    if let Some(real) = real {
        line.push_str(" (auth:PROXY) via ");
        escape(&mut line, Some(real));
    }
    let _ = write!(line, " (auth:{by})\tip=/{ip}");
    line
}

/// Whether the call counts as allowed; `None` where nothing is told of it.
fn allowed(ns: &Namesystem, event: &Event, answer: &Answer) -> Option<bool> {
    match answer {
        Ok(body) => match event.when {
            When::Done | When::Allowed | When::Tried | When::Looked => Some(true),
            When::True => is_true(body).then_some(true),
            When::Filled => (!body.is_empty()).then_some(true),
            When::AsAnswered => Some(is_true(body)),
            When::Denied => None,
        },
        Err(_) if event.when == When::Allowed => needs_superuser(answer).then_some(false),
        Err(_) if is_denied(answer) => Some(false),
        Err(refusal) => match event.when {
            When::Tried => Some(false),
            When::Looked => has_looked(ns, event, &refusal.0.class).then_some(true),
            _ => None,
        },
    }
}

/// Whether something was found, or nothing, and not only the path refused: what leads nowhere by an inode's number is.
fn has_looked(ns: &Namesystem, event: &Event, name: &str) -> bool {
    let is_somewhere = || {
        let path = event.src.as_deref().unwrap_or_default();
        let Some(rest) = path.strip_prefix("/.reserved/.inodes/") else { return true };
        let number = rest.split('/').next().unwrap_or_default();
        number.is_empty() || status(ns, &format!("/.reserved/.inodes/{number}")).is_some()
    };
    name == class::IO || name == class::FILE_NOT_FOUND && is_somewhere()
}

/// Whether an answer is `true` in its first field.
fn is_true(body: &[u8]) -> bool {
    body.starts_with(&[8, 1])
}

/// Whether the caller is no superuser and has to be.
fn needs_superuser(answer: &Answer) -> bool {
    let says = |refusal: &Refusal| refusal.0.message.contains("uperuser privilege is required");
    is_denied(answer) && answer.as_ref().is_err_and(says)
}

fn is_denied(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|refusal| calls::is_denial(&refusal.0.class))
}

/// Whether a call enables or disables an erasure coding policy that is so already.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#enableErasureCodingPolicy`, `#disableErasureCodingPolicy`.
fn changes_nothing(ns: &Namesystem, call: &Call) -> bool {
    let wanted = match call.method.as_str() {
        "enableErasureCodingPolicy" => PolicyState::Enabled,
        "disableErasureCodingPolicy" => PolicyState::Disabled,
        _ => return false,
    };
    let name = calls::string_field(&call.body, 1).unwrap_or_default();
    let policies = ns.read(|store| query::policies(store)).unwrap_or_default();
    policies.iter().any(|info| info.policy.name == name && info.state == wanted)
}

fn status(ns: &Namesystem, path: &str) -> Option<query::FileStatus> {
    let found = ns.read(|store| query::get_file_info(store, &Caller::system(), path));
    found.ok().flatten()
}

/// The path that a rename gives: by the source's name in the target, where that is a directory.
fn leads_to(ns: &Namesystem, event: &Event) -> Option<String> {
    let dst = event.dst.as_deref()?;
    let Some(target) = status(ns, dst).filter(|status| status.inode.is_directory()) else {
        return Some(dst.to_string());
    };
    let source = status(ns, event.src.as_deref()?)?;
    // By its number: nothing may follow on the `..` of a path that begins with a number.
    Some(format!("/.reserved/.inodes/{}/{}", target.inode.id.0, source.inode.name))
}

/// Owner, group and mode of what the call was about, as it is now.
fn permissions(
    ns: &Namesystem,
    event: &Event,
    renamed: Option<&str>,
    answer: &Answer,
) -> Option<String> {
    let path = match event.stat {
        Stat::None | Stat::Created => return None,
        Stat::Answered => return calls::created(answer.as_ref().ok()?),
        Stat::Source => event.src.as_deref()?,
        Stat::Target => event.dst.as_deref()?,
        Stat::Renamed => renamed?,
    };
    let status = status(ns, path)?;
    let inode = &status.inode;
    Some(calls::permissions(&inode.owner, &inode.group, inode.mode))
}

/// As a string is written in a program of Java: no name can end a field or a line.
fn escape(out: &mut String, text: Option<&str>) {
    let Some(text) = text else {
        out.push_str("null");
        return;
    };
    for unit in text.encode_utf16() {
        match char::from_u32(u32::from(unit)) {
            Some(quote @ ('"' | '\\')) => out.extend(['\\', quote]),
            Some('\n') => out.push_str("\\n"),
            Some('\t') => out.push_str("\\t"),
            Some('\r') => out.push_str("\\r"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(plain @ ' '..='~') => out.push(plain),
            _ => {
                let _ = write!(out, "\\u{unit:04X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::rpc_server::{CallerContext, UserInfo};
    use cairn_security::token::TokenName;

    #[test]
    fn tokens_are_told_by_what_hadoop_tracks_them_by_and_by_number() {
        let name = TokenName { number: 7, tracking_id: "0f".to_string() };
        for (by, want) in [
            (Authentication::Simple, "\ttrackingId=null"),
            (Authentication::Token(None), "\ttrackingId=null"),
            (Authentication::Token(Some(name)), "\ttrackingId=0f\ttoken=7"),
        ] {
            let mut line = String::new();
            write_token(&mut line, &by);
            assert_eq!(line, want);
        }
    }

    /// The end of the line of a call, by a log that is opened so and then told whether to tell contexts.
    fn end_of_line(config: AuditConfig, tells: bool, context: &str, signature: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("audit");
        let config = AuditConfig { file: Some(file.clone()), ..config };
        let log = AuditLog::open(&config).unwrap().unwrap();
        log.tell_context(tells);
        let told = CallerContext { context: context.to_string(), signature: signature.to_vec() };
        let call = Call {
            protocol: "p".to_string().into(),
            method: "rollEdits".to_string().into(),
            version: 1,
            user: UserInfo::simple("ann").into(),
            client_id: [0; 16],
            call_id: 3,
            retry_count: 0,
            peer: "127.0.0.1:1".parse().unwrap(),
            body: Default::default(),
            connection_protocol: "p".into(),
            caller_context: Some(told),
            carrier: "rpc",
            state: None,
        };
        log.write(&call, true, &calls::events(&call)[0], None);
        // Its thread has written all when it is dropped.
        drop(log);
        let text = std::fs::read_to_string(file).unwrap();
        text.split_once("\tproto=rpc").unwrap().1.trim_end_matches('\n').to_string()
    }

    #[test]
    fn what_clients_say_of_themselves_is_told_as_far_as_is_wanted() {
        let cut =
            || AuditConfig { caller_context_max: 3, signature_max: 2, ..AuditConfig::default() };
        for (tells, context, signature, want) in [
            (false, "spark", &b"s"[..], ""),
            (true, "spark", b"", "\tcallerContext=spa"),
            (true, "a\tb", b"s\n", "\tcallerContext=a\\t:s\\n"),
            (true, "a", b"sss", "\tcallerContext=a"),
            (true, "", b"s", ""),
        ] {
            assert_eq!(end_of_line(cut(), tells, context, signature), want, "{context}");
        }
    }

    #[test]
    fn ports_are_parts_of_what_clients_say() {
        let config = || AuditConfig {
            tells_ports: true,
            separator: ";".to_string(),
            ..AuditConfig::default()
        };
        for (context, want) in [
            ("", "clientPort:1"),
            ("spark", "spark;clientPort:1"),
            ("clientPort:7", "clientPort:7"),
            ("realUser:eve", "realUser:eve;clientPort:1;proxyUserPort:1"),
        ] {
            let want = format!("\tcallerContext={want}");
            assert_eq!(end_of_line(config(), true, context, b""), want);
        }
    }

    #[test]
    fn names_cannot_end_a_field_or_a_line() {
        for (text, want) in [
            (None, "null"),
            (Some("/a b"), "/a b"),
            (Some("/a\tb\nc\\\"d"), "/a\\tb\\nc\\\\\\\"d"),
            (Some("/ä\u{1f600}\u{7f}"), "/\\u00E4\\uD83D\\uDE00\\u007F"),
        ] {
            let mut out = String::new();
            escape(&mut out, text);
            assert_eq!(out, want);
        }
    }
}
