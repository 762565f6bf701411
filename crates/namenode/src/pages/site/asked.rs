//! Who asks for which file, and what clients' calls answer.

use std::net::SocketAddr;
use std::sync::Arc;

use cairn_net::http::{Request, WEBHDFS, percent_encode};
use cairn_net::page::html::encode;
use cairn_net::rpc_server::{Call, LocalService, UserInfo};
use cairn_wire::RemoteException;
use cairn_wire::proto::hdfs as pb;
use prost::Message;

use crate::protocol::{CLIENT, Protocols};

/// Where the browser is.
pub(crate) const PATH: &str = "/files";

/// The address of the page of a path, asked for by that user, with further parameters.
pub(super) fn address(path: &str, user: Option<&str>, more: &[(&str, &str)]) -> String {
    let mut out = format!("{PATH}?path={}", encode(path));
    for (name, value) in user.map(|user| ("user.name", user)).iter().chain(more) {
        out.push_str(&format!("&{name}={}", encode(value)));
    }
    out
}

/// Who asks for what.
pub(super) struct Asked<'a> {
    pub(super) path: String,
    pub(super) user: String,
    pub(super) request: &'a Request,
    pub(super) service: &'a Protocols,
}

impl Asked<'_> {
    /// Makes a call as that user.
    pub(super) async fn call<Q: Message, A: Message + Default>(
        &self,
        method: &'static str,
        request: &Q,
    ) -> Result<A, String> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let call = Call {
            protocol: CLIENT.to_string().into(),
            method: method.to_string().into(),
            version: 1,
            user: match &self.request.user {
                Some(shown) => Arc::clone(shown),
                None => Arc::new(UserInfo::simple(self.user.clone())),
            },
            // Nobody repeats it.
            client_id: [0; 16],
            call_id: 0,
            retry_count: -1,
            peer: self.request.peer.unwrap_or(nowhere),
            body: request.encode_to_vec().into(),
            connection_protocol: CLIENT.into(),
            caller_context: None,
            carrier: "http",
            state: None,
        };
        let first_line = |refused: RemoteException| refused.first_line().to_string();
        let answer = self.service.call_here(call).await.map_err(first_line)?;
        A::decode(&answer[..]).map_err(|error| error.to_string())
    }

    /// The address of the page of another path.
    pub(super) fn to(&self, path: &str, more: &[(&str, &str)]) -> String {
        address(path, self.given_user(), more)
    }

    fn given_user(&self) -> Option<&str> {
        self.request.param("user.name").filter(|_| self.request.user.is_none())
    }

    /// The place of the path in WebHDFS.
    pub(super) fn web_path(&self, path: &str) -> String {
        format!("{WEBHDFS}{}", percent_encode(path, true))
    }
}

/// How the bytes of a file are kept, or those of files that are made in a directory.
pub(super) fn layout(status: &pb::HdfsFileStatusProto) -> String {
    match (&status.ec_policy, status.file_type()) {
        (Some(policy), _) => policy.name.clone().unwrap_or_else(|| format!("policy {}", policy.id)),
        (None, pb::HdfsFileStatusProtoFileType::IsFile) => match status.block_replication() {
            1 => "one copy".to_string(),
            copies => format!("{copies} copies"),
        },
        _ => String::new(),
    }
}

/// Who may do what, as `ls` shows it.
pub(super) fn mode(status: &pb::HdfsFileStatusProto) -> String {
    let bits = status.permission.perm;
    let mut out = String::from(match status.file_type() {
        pb::HdfsFileStatusProtoFileType::IsDir => "d",
        pb::HdfsFileStatusProtoFileType::IsSymlink => "l",
        pb::HdfsFileStatusProtoFileType::IsFile => "-",
    });
    for shift in [6, 3, 0] {
        for (bit, letter) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            out.push(if bits >> shift & bit != 0 { letter } else { '-' });
        }
    }
    if bits & 0o1000 != 0 {
        out.pop();
        out.push(if bits & 1 != 0 { 't' } else { 'T' });
    }
    if status.flags() & pb::HdfsFileStatusProtoFlags::HasAcl as u32 != 0 {
        out.push('+');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::http::Method;

    fn status(perm: u32, flags: u32) -> pb::HdfsFileStatusProto {
        pb::HdfsFileStatusProto {
            file_type: pb::HdfsFileStatusProtoFileType::IsDir as i32,
            permission: pb::FsPermissionProto { perm },
            flags: Some(flags),
            ..pb::HdfsFileStatusProto::default()
        }
    }

    #[test]
    fn modes_are_shown_as_ls_does() {
        let has_acl = pb::HdfsFileStatusProtoFlags::HasAcl as u32;
        assert_eq!(mode(&status(0o1777, 0)), "drwxrwxrwt");
        assert_eq!(mode(&status(0o1640, has_acl)), "drw-r----T+");
    }

    #[test]
    fn addresses_bring_any_name_back() {
        let path = "/a b/<c>&\"'%41+;#ä漢\n";
        let address = address(path, Some("o'n<e>"), &[("after", "x&y")]);
        let request = Request::new(Method::GET, &address).unwrap();
        assert_eq!(request.param("path"), Some(path));
        assert_eq!(
            (request.param("user.name"), request.param("after")),
            (Some("o'n<e>"), Some("x&y"))
        );
    }
}
