//! Where a NameNode sends who wants the bytes of a file.
//!
//! Source: Hadoop 3.5.0 `NamenodeWebHdfsMethods#redirectURI`, `#chooseDatanode`.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_net::Boxed;
use cairn_net::http::{Answer, Request, Response, WEBHDFS, percent_encode};
use cairn_wire::exception::class;
use cairn_wire::proto::common::{GetDelegationTokenRequestProto, GetDelegationTokenResponseProto};
use cairn_wire::proto::hdfs::*;
use prost::Message;
use serde_json::json;

use crate::data::{OCTETS, check_offset};
use crate::failure::{Failure, JSON};
use crate::json;
use crate::names::{Asker, Names};
use crate::params::Params;

/// Says that a client decrypts itself, and what it needs for that.
const ACCEPTS_ENCRYPTED: &str = "x-hadoop-accept-ez";
const ENCRYPTION_INFO: &str = "x-hadoop-feinfo";

/// The HTTP server of a DataNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name that the DataNode has registered with.
    pub host_name: String,
    /// Its address.
    pub ip: String,
    /// The port of its pages.
    pub port: u16,
}

/// Chooses a DataNode for a client at an address, but none of those that are excluded (`host`, or `host:port` of the
/// data transfer), with a port of TLS if the client came by that. `None` when there is none.
pub type Choose = dyn Fn(IpAddr, Vec<String>, bool) -> Boxed<'static, Option<Target>> + Send + Sync;

/// What redirections are made of.
#[derive(Clone)]
pub struct Redirects {
    /// Chooses where to write, and where to read what no DataNode with an HTTP server has.
    pub choose: Arc<Choose>,
    /// `host:port` of the NameNode's RPC, for DataNodes.
    pub namenode: String,
    /// Whether DataNodes are named by their addresses and not by their names.
    pub by_address: bool,
}

/// A request for the bytes of a file.
pub(crate) struct Wanted<'a> {
    pub(crate) op: &'static str,
    pub(crate) path: &'a str,
    pub(crate) request: &'a Request,
    pub(crate) asker: &'a Asker,
    /// Whether the DataNode has to be shown a token.
    pub(crate) by_token: bool,
}

impl Redirects {
    /// The redirection of a request, or with `noredirect` the place as JSON.
    pub(crate) async fn answer(
        &self,
        names: &Names,
        wanted: Wanted<'_>,
    ) -> Result<Answer, Failure> {
        let p = Params::of(wanted.request);
        let excluded = p.text("excludedatanodes").unwrap_or_default();
        let excluded: Vec<String> = excluded
            .split(',')
            .map(|host| host.trim().to_string())
            .filter(|host| !host.is_empty())
            .collect();
        let reads = ["OPEN", "GETFILECHECKSUM", "APPEND"].contains(&wanted.op);
        let status = match reads {
            true => Some(status(names, &wanted).await?),
            false => None,
        };
        let near = match &status {
            Some(status) if status.length > 0 => {
                self.holder(names, &wanted, status, &excluded).await?
            }
            _ => None,
        };
        let peer = wanted.asker.peer.ip().to_canonical();
        let target = match near {
            Some(target) => Some(target),
            None => (self.choose)(peer, excluded, wanted.request.is_secure).await,
        };
        let Some(target) = target else {
            return Err(self.nobody(names, &wanted, &p).await);
        };
        let mut path = wanted.path.to_string();
        let mut headers = Vec::new();
        let info = status.as_ref().and_then(|status| status.file_encryption_info.as_ref());
        if let Some(info) = info
            && wanted.op == "OPEN"
            && wanted.request.headers.contains_key(ACCEPTS_ENCRYPTED)
        {
            path.insert_str(0, "/.reserved/raw");
            headers.push((ENCRYPTION_INFO, STANDARD.encode(info.encode_to_vec())));
        }
        let host = if self.by_address { &target.ip } else { &target.host_name };
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        let mut more = vec![("namenoderpcaddress", self.namenode.as_str())];
        let token = match wanted.by_token && p.text("delegation").is_none() {
            true => Some(token(names, &wanted).await?),
            false => None,
        };
        more.extend(token.as_ref().map(|token| ("delegation", token.as_str())));
        // Who has a token need not say who it is.
        let left_out: &[&str] = if wanted.by_token { &["user.name", "doas"] } else { &[] };
        let query = query(&p, left_out, &more);
        let place = format!(
            "{}://{host}:{}{WEBHDFS}{}?{query}",
            wanted.request.scheme(),
            target.port,
            percent_encode(&path, true)
        );
        answer(place, p.boolean("noredirect", false)?, headers)
    }

    /// A DataNode with an HTTP server that has the first wanted block, or the last one for who appends.
    async fn holder(
        &self,
        names: &Names,
        wanted: &Wanted<'_>,
        status: &HdfsFileStatusProto,
        excluded: &[String],
    ) -> Result<Option<Target>, Failure> {
        let mut offset = status.length - 1;
        if wanted.op == "OPEN" {
            let p = Params::of(wanted.request);
            let from = p.long("offset", Some(0))?.unwrap_or_default();
            offset = u64::try_from(from).unwrap_or_default();
            check_offset(wanted.path, offset, status.length)?;
        }
        let ask = GetBlockLocationsRequestProto {
            src: wanted.path.to_string(),
            offset,
            length: 1,
            ..Default::default()
        };
        let answer: GetBlockLocationsResponseProto =
            names.call(wanted.asker, "getBlockLocations", &ask).await?;
        let locations = answer.locations.unwrap_or_default();
        let block = locations.blocks.first();
        let block = block.ok_or_else(|| {
            let path = wanted.path;
            Failure::io(format!("Block could not be located. Path={path}, offset={offset}"))
        })?;
        let is_excluded = |id: &DatanodeIDProto| {
            excluded.iter().any(|host| {
                let is_it =
                    |name: &str| *host == name || *host == format!("{name}:{}", id.xfer_port);
                is_it(&id.ip_addr) || is_it(&id.host_name)
            })
        };
        let port = |id: &DatanodeIDProto| match wanted.request.is_secure {
            true => id.info_secure_port.unwrap_or_default(),
            false => id.info_port,
        };
        let found = block.locs.iter().find(|node| {
            node.admin_state() != DatanodeInfoProtoAdminState::Decommissioned
                && port(&node.id) != 0
                && !is_excluded(&node.id)
        });
        Ok(found.and_then(|node| {
            Some(Target {
                host_name: node.id.host_name.clone(),
                ip: node.id.ip_addr.clone(),
                port: u16::try_from(port(&node.id)).ok()?,
            })
        }))
    }

    /// Why there is no DataNode: while the NameNode is in safe mode some may come yet, and the client is to wait for them.
    async fn nobody(&self, names: &Names, wanted: &Wanted<'_>, p: &Params<'_>) -> Failure {
        let ask = SetSafeModeRequestProto {
            action: SafeModeActionProto::SafemodeGet as i32,
            checked: Some(false),
        };
        let mode: Result<SetSafeModeResponseProto, Failure> =
            names.call(wanted.asker, "setSafeMode", &ask).await;
        match mode {
            Ok(mode) if mode.result => {
                let message = "No DataNode serves HTTP yet, and the NameNode is in safe mode";
                return Failure::new(class::RETRIABLE, message);
            }
            // Whoever knows of one is to be asked.
            Err(failure) if failure.is(class::STANDBY) => return failure,
            _ => {}
        }
        let excluded = p.text("excludedatanodes").unwrap_or("null");
        Failure::io(format!(
            "Failed to find datanode, suggest to check cluster health. excludeDatanodes={excluded}"
        ))
    }
}

/// A token for the DataNode, of who asks.
///
/// Source: Hadoop 3.5.0 `NamenodeWebHdfsMethods#generateDelegationToken`.
async fn token(names: &Names, wanted: &Wanted<'_>) -> Result<String, Failure> {
    let renewer = wanted.asker.user.effective.clone();
    let ask = GetDelegationTokenRequestProto { renewer };
    let got: GetDelegationTokenResponseProto =
        names.call(wanted.asker, "getDelegationToken", &ask).await?;
    let token = got.token.ok_or_else(|| Failure::io("The NameNode issues no tokens"))?;
    Ok(json::url_string(&token))
}

async fn status(names: &Names, wanted: &Wanted<'_>) -> Result<HdfsFileStatusProto, Failure> {
    let ask = GetFileInfoRequestProto { src: wanted.path.to_string() };
    let answer: GetFileInfoResponseProto = names.call(wanted.asker, "getFileInfo", &ask).await?;
    answer.fs.ok_or_else(|| Failure::not_found(format!("File {} not found.", wanted.path)))
}

/// Where a gateway wants a body to be sent: to itself, as HttpFS does, since clients do not send it with the first request.
pub(crate) fn to_itself(request: &Request, path: &str) -> Result<Answer, Failure> {
    let p = Params::of(request);
    let host = request.headers.get("host").and_then(|host| host.to_str().ok());
    let host = host.ok_or_else(|| Failure::argument("The request names no host"))?;
    let query = query(&p, &[], &[("data", "true")]);
    let place =
        format!("{}://{host}{WEBHDFS}{}?{query}", request.scheme(), percent_encode(path, true));
    answer(place, p.boolean("noredirect", false)?, Vec::new())
}

fn answer(
    place: String,
    noredirect: bool,
    mut headers: Vec<(&'static str, String)>,
) -> Result<Answer, Failure> {
    let response = match noredirect {
        true => Response::ok(JSON, json!({"Location": place}).to_string()),
        false => {
            headers.push(("location", place));
            Response::new(307, OCTETS, Vec::new())
        }
    };
    Ok(Response { headers, ..response }.into())
}

/// The parameters of the request but those that are left out, with `more` in the place of those of the same names.
fn query(p: &Params<'_>, left_out: &[&str], more: &[(&str, &str)]) -> String {
    let is_kept = |name: &str| {
        !["noredirect", "excludedatanodes"].contains(&name)
            && !left_out.contains(&name)
            && more.iter().all(|(other, _)| *other != name)
    };
    let mut out = String::new();
    let mut put = |name: &str, value: &str| {
        let separator = if out.is_empty() { "" } else { "&" };
        let _ = write!(
            out,
            "{separator}{}={}",
            percent_encode(name, false),
            percent_encode(value, false)
        );
    };
    for (name, value) in p.pairs().filter(|(name, _)| is_kept(name)) {
        put(&name, value);
    }
    for (name, value) in more {
        put(name, value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::http::Method;

    #[test]
    fn names_come_through_a_redirection_unchanged() {
        for name in ["a%b", "a+b", "a;b", "a b", "a\"'b", "ä/漢", "a=b&c#d?e", "%41", "a\\b:c"] {
            let path = format!("/{name}");
            let target = format!(
                "{}?op=OPEN&user.name={}",
                percent_encode(&path, true),
                percent_encode(name, false)
            );
            let first = Request::new(Method::GET, &target).unwrap();
            assert_eq!(first.path, path);
            let p = Params::of(&first);
            let again =
                format!("{}?{}", percent_encode(&first.path, true), query(&p, &[], &[("x", name)]));
            let second = Request::new(Method::GET, &again).unwrap();
            assert_eq!(second.path, path);
            assert_eq!((second.param("user.name"), second.param("x")), (Some(name), Some(name)));
        }
    }

    #[test]
    fn what_only_the_first_server_needs_is_not_passed_on() {
        let first = Request::new(
            Method::GET,
            "/f?OP=OPEN&NoRedirect=true&excludedatanodes=a&namenoderpcaddress=evil:1",
        )
        .unwrap();
        let passed = query(&Params::of(&first), &[], &[("namenoderpcaddress", "nn:8020")]);
        assert_eq!(passed, "op=OPEN&namenoderpcaddress=nn%3A8020");
    }
}
