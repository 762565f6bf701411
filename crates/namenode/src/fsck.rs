//! `hdfs fsck`: a walk over a tree that tells which blocks lack what, in Hadoop's words.
//!
//! The NameNode answers `GET /fsck` with a text that is sent while it is made; Hadoop's `DFSck` prints
//! it and takes its exit status from the last line, so wording and order are Hadoop's. The walk takes
//! one page of a directory, or some blocks of a file, at a time, and holds no lock in between: what
//! changes meanwhile is told as it was or as it is. What blocks lack is judged by `cairn-redundancy`'s
//! [`Verdict`](cairn_redundancy::Verdict). Tested in `tests/it/fsck.rs` and by `interop/hadoop/cases/fsck`.
//!
//! Source: Hadoop 3.5.0 `NamenodeFsck`, `FsckServlet`.

mod block;
mod block_id;
mod check;
mod file;
mod group;
mod lost;
mod options;
mod out;
pub mod salvage;
mod stop;
mod storage;
mod totals;
mod walk;

#[cfg(test)]
mod tests;

use crate::node::NameNode;
use crate::refusal::Refusal;
use cairn_net::http::{Answer, Request, Response, Streamed};
use check::Check;
use options::Options;
use out::Out;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use stop::Stop;
use tokio::sync::mpsc;

/// Pieces of the answer that may wait for the client.
const PIECES_MAX: usize = 8;
/// Who asks when a request does not say it. Source: Hadoop 3.5.0 `hadoop.http.staticuser.user`.
const DEFAULT_USER: &str = "dr.who";
const TEXT: &str = "text/plain;charset=utf-8";
/// Why damaged files of a restored namespace stay as they are.
const NOT_ACCEPTED: &str = "The namespace was restored from a backup or imported, and that is not accepted yet: files may only \
     seem to be damaged. Neither -delete nor -move is done before `cairn admin restored --accept`; `cairn admin restored` tells \
     what is still to be read.";
const JSON_LINES: &str = "application/x-ndjson;charset=utf-8";

/// Answers `GET /fsck`: begins a check, and sends what it finds.
pub(crate) fn page(node: &Arc<NameNode>, request: &Request) -> Answer {
    if !request.wants_body() {
        return Response::error(405, "only GET is served").into();
    }
    let user = match user(request) {
        Ok(user) => user,
        Err(refusal) => return refusal.into(),
    };
    let options = Options::from_query(&request.query);
    let content_type = if options.json { JSON_LINES } else { TEXT };
    let (sender, body) = mpsc::channel(PIECES_MAX);
    let peer = request.peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
    let by = way_in(request);
    let (node, out) = (Arc::clone(node), Out::new(sender, options.json));
    tokio::spawn(async move {
        let caller = node.caller_named(user).await;
        Check::new(node, (caller, by), peer, options, out).run().await;
    });
    Answer::Streamed(Streamed::new(content_type, body))
}

/// The user that has shown to ask, or that a request names.
///
/// Source: Hadoop 3.5.0 `JspHelper#getUGI`.
pub(crate) fn user(request: &Request) -> Result<String, Response> {
    let ugi = || request.param("ugi").map(|ugi| ugi.split(',').next().unwrap_or_default());
    let shown = request.user.as_ref().map(|user| user.effective.as_str());
    let named = || request.param("user.name").or_else(ugi);
    let user = shown.or_else(named).unwrap_or(DEFAULT_USER);
    if user.is_empty() {
        return Err(Response::error(400, "Null user"));
    }
    match request.param("doas") {
        Some(other) if other != user => {
            let text = format!("User: {user} is not allowed to impersonate {other}");
            Err(Response::error(403, &text))
        }
        _ => Ok(user.to_string()),
    }
}

/// How it is known who asks, by its name in Hadoop.
///
/// Source: Hadoop 3.5.0 `JspHelper#getUGI`. Deviation: Hadoop says `TOKEN` where a request has a delegation token as well.
fn way_in(request: &Request) -> &'static str {
    if request.user.is_some() { "KERBEROS_SSL" } else { "SIMPLE" }
}

impl Check {
    async fn run(mut self) {
        if self.options.show_progress {
            self.out.print(
                "The fsck switch -showprogress is deprecated and no longer has any effect. Progress \
                 is now shown by default.\n",
            );
        }
        let done = match self.options.block_ids.clone() {
            Some(names) => self.check_blocks(&names).await,
            None => self.check_path().await,
        };
        self.audit();
        match done {
            Ok(()) => {}
            Err(Stop::Gone) => return,
            Err(Stop::Failed(reason)) => self.tell_failure(&reason),
        }
        self.out.finish().await;
    }

    /// Hadoop calls every check of a path allowed, whatever came of it.
    fn audit(&self) {
        let Some(audit) = &self.node.audit else { return };
        let user = (self.caller.user.as_str(), self.by);
        match &self.options.block_ids {
            Some(names) => {
                let src = format!("blocksIds=[{}]", names.join(", "));
                let allowed = self.node.require_superuser(&self.caller, "fsck").is_ok();
                audit.fsck(allowed, user, self.peer, &src);
            }
            None => audit.fsck(true, user, self.peer, &self.options.path),
        }
    }

    fn tell_failure(&mut self, reason: &str) {
        let path = &self.options.path;
        tracing::warn!(path, reason, user = self.caller.user, "fsck has failed");
        self.out.finding(&json!({"path": path, "status": "FAILED", "error": reason}));
        self.tell_end();
        self.out.print(&format!("{reason}\n\n\nFsck on path '{}' FAILED", self.options.path));
    }

    async fn check_path(&mut self) -> Result<(), Stop> {
        let path = self.options.path.clone();
        self.tell_start(&format!(" for path {path}"));
        self.check_accepted()?;
        let caller = &self.caller;
        let found = self
            .node
            .ns
            .read(|store| cairn_namespace::query::get_file_info(store, caller, &path))?;
        let Some(status) = found else {
            self.out.finding(&json!({"path": path, "status": "NONEXISTENT"}));
            self.out.print(&format!("\n\nPath '{path}' does not exist"));
            return Ok(());
        };
        if self.options.list_corrupt {
            return self.list_corrupt(&path);
        }
        self.walk(&path, status).await?;
        self.tell_totals();
        if self.internal_error {
            return Err(Stop::Failed("fsck encountered internal errors!".to_string()));
        }
        let status = if self.is_healthy() { "HEALTHY" } else { "CORRUPT" };
        self.out.print(&format!("\n\nThe filesystem under path '{path}' is {status}"));
        Ok(())
    }

    /// Refuses to change anything before a restored namespace is accepted: DataNodes may have what it does not know yet, and
    /// files only seem to be damaged.
    fn check_accepted(&self) -> Result<(), Stop> {
        let changes = self.options.delete_damaged || self.options.move_damaged;
        match changes && self.node.ns.restored().is_some() {
            true => Err(Refusal::io(NOT_ACCEPTED).into()),
            false => Ok(()),
        }
    }

    fn is_healthy(&self) -> bool {
        self.replicated.is_healthy() && self.striped.is_healthy()
    }

    fn tell_totals(&mut self) {
        let (live, racks) = {
            let cluster = self.node.cluster();
            (cluster.live_count(), cluster.racks().len())
        };
        let status = if self.is_healthy() { "HEALTHY" } else { "CORRUPT" };
        let config = &self.node.config;
        let replicated =
            self.replicated.replicated_text(config.replication, config.min_replication);
        let striped = self.striped.striped_text();
        self.out.print(&format!(
            "\nStatus: {status}\n Number of data-nodes:\t{live}\n Number of racks:\t\t{racks}\n \
             Total dirs:\t\t\t{}\n Total symlinks:\t\t0\n\nReplicated Blocks:\n{replicated}\n\n\
             Erasure Coded Block Groups:\n{striped}\n",
            self.directories
        ));
        if self.passed_over > 0 {
            self.out.print(&format!("\nFiles that were not looked at:\t{}\n", self.passed_over));
        }
        if self.options.storage_policies {
            self.out.print(&self.storage.to_string());
        }
        self.out.finding(&json!({
            "path": self.options.path,
            "status": if self.internal_error { "FAILED" } else { status },
            "live_datanodes": live,
            "racks": racks,
            "directories": self.directories,
            "files_not_looked_at": self.passed_over,
            "replicated_blocks": self.replicated.as_json(),
            "block_groups": self.striped.as_json(),
        }));
        self.tell_end();
    }
}
