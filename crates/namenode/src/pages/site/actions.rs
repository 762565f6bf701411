//! What can be done with a file or directory: forms that the page's script sends to WebHDFS.

use std::fmt::Write as _;

use cairn_namespace::query;
use cairn_net::page::html::escape;
use cairn_stripe::{PolicyState, StoragePolicy};
use cairn_wire::proto::hdfs as pb;

use super::asked::Asked;
use crate::node::NameNode;

/// A form for an operation on what is at `place`, a path of WebHDFS.
struct Form<'a> {
    method: &'static str,
    op: &'static str,
    place: &'a str,
    user: &'a str,
    /// Where to go when it is done; empty to stay.
    then: &'a str,
    /// What is asked first, as text.
    asks: &'static str,
}

impl Form<'_> {
    /// The form with its fields, which are markup, and the name of its button.
    fn with(&self, fields: &str, button: &str) -> String {
        let Form { method, op, .. } = self;
        let [place, user, then] = [self.place, self.user, self.then].map(escape);
        let mut out = format!(
            "<form data-method=\"{method}\" data-op=\"{op}\" data-path=\"{place}\" data-user=\"{user}\""
        );
        for (name, value) in [("then", then.as_str()), ("ask", self.asks)] {
            if !value.is_empty() {
                let _ = write!(out, " data-{name}=\"{value}\"");
            }
        }
        let _ = write!(out, ">{fields}<button>{button}</button></form>");
        out
    }
}

fn field(label: &str, name: &str, value: &str) -> String {
    let value = escape(value);
    format!("<label>{label}<input name=\"{name}\" value=\"{value}\"></label>")
}

fn choice<'a>(label: &str, name: &str, values: impl Iterator<Item = &'a str>) -> String {
    let mut options = String::new();
    for value in values {
        let value = escape(value);
        let _ = write!(options, "<option>{value}</option>");
    }
    format!("<label>{label}<select name=\"{name}\">{options}</select></label>")
}

/// All that can be done.
pub(super) fn of(node: &NameNode, asked: &Asked<'_>, status: &pb::HdfsFileStatusProto) -> String {
    let is_file = status.file_type() == pb::HdfsFileStatusProtoFileType::IsFile;
    let place = asked.web_path(&asked.path);
    let form =
        |method, op| Form { method, op, place: &place, user: &asked.user, then: "", asks: "" };
    let mut out =
        String::from("<div class=\"needs-script\" hidden><p id=\"said\" role=\"status\"></p>");
    if is_file {
        out.push_str(&bytes(asked, &place, status.length));
    } else {
        out.push_str(&form("PUT", "CREATE").with(
            "<label>Files to write here<input type=\"file\" name=\"_file\" multiple required></label>\
             <label>Replace<input type=\"checkbox\" name=\"_overwrite\"></label>\
             <progress max=\"1\" value=\"0\" hidden aria-label=\"Written\"></progress>",
            "Upload",
        ));
        let name = "<label>New directory<input name=\"_name\" required></label>";
        out.push_str(&form("PUT", "MKDIRS").with(name, "Make"));
    }
    out.push_str("<details><summary>Change it</summary>");
    let mode = format!("{:o}", status.permission.perm);
    out.push_str(
        &form("PUT", "SETPERMISSION").with(&field("Mode, octal", "permission", &mode), "Set"),
    );
    let owner = field("Owner", "owner", &status.owner) + &field("Group", "group", &status.group);
    out.push_str(&form("PUT", "SETOWNER").with(&owner, "Set"));
    let storage = StoragePolicy::ALL.iter().map(|policy| policy.name);
    let storage = choice("Storage policy", "storagepolicy", storage);
    out.push_str(&form("PUT", "SETSTORAGEPOLICY").with(&storage, "Set"));
    if is_file {
        let copies = status.block_replication().to_string();
        if status.ec_policy.is_none() {
            out.push_str(
                &form("PUT", "SETREPLICATION")
                    .with(&field("Copies", "replication", &copies), "Set"),
            );
        }
    } else {
        let known = node.ns.read(|store| query::policies(store)).unwrap_or_default();
        let enabled = known.iter().filter(|info| info.state == PolicyState::Enabled);
        let names = enabled.map(|info| info.policy.name.as_str());
        let policy = choice("Erasure coding of new files", "ecpolicy", names);
        out.push_str(&form("PUT", "SETECPOLICY").with(&policy, "Set"));
        out.push_str(
            &form("POST", "UNSETECPOLICY").with("", "Back to that of the directory above"),
        );
        if status.flags() & pb::HdfsFileStatusProtoFlags::SnapshotEnabled as u32 != 0 {
            let name = "<label>New snapshot<input name=\"snapshotname\" required></label>";
            out.push_str(&form("PUT", "CREATESNAPSHOT").with(name, "Make"));
        }
    }
    if asked.path != "/" {
        let above = match asked.path.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((above, _)) => above,
        };
        let then = asked.to(above, &[]);
        let moved = Form { then: &then, ..form("PUT", "RENAME") };
        out.push_str(&moved.with(&field("New path", "destination", &asked.path), "Move"));
        let asks = match is_file {
            true => "Delete this file for good?",
            false => "Delete this directory and all that is in it for good?",
        };
        let delete = Form { then: &then, asks, ..form("DELETE", "DELETE") };
        out.push_str(
            &delete.with("<input type=\"hidden\" name=\"recursive\" value=\"true\">", "Delete"),
        );
    }
    out.push_str("</details></div>");
    out
}

/// How to get at the bytes of a file: all of them, or those at its ends.
fn bytes(asked: &Asked<'_>, place: &str, len: u64) -> String {
    /// Bytes of an end that is shown.
    const END_LEN: u64 = 4096;
    let user = escape(&asked.user);
    let end = |name: &str, offset: u64| {
        format!(
            "<button type=\"button\" data-path=\"{}\" data-user=\"{user}\" data-offset=\"{offset}\" \
             data-length=\"{END_LEN}\">{name}</button> ",
            escape(place)
        )
    };
    let ends = match len {
        0 => String::new(),
        len => end("Head", 0) + &end("Tail", len.saturating_sub(END_LEN)),
    };
    format!(
        "<p>{ends}</p><pre id=\"bytes\" tabindex=\"0\" aria-label=\"Bytes of the file\" hidden></pre>"
    )
}
