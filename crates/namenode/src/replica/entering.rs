//! How a member enters its quorum: what it shows the others, and where it listens for them.

use super::error::ReplicaError;
use crate::config::quorum::{QuorumConfig, QuorumTls};
use crate::quorum::{Credentials, Key, Member, Options};
use cairn_codec::crc::crc32c;
use cairn_namespace::obeyed::Obeyed;
use cairn_net::reach::Reach;
use cairn_net::tls::mutual::MutualTls;
use cairn_quorum::ELECTION_TURNS;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

/// Starts the member's part in the quorum.
pub(super) async fn enter(
    quorum: &QuorumConfig,
    reach: &Reach,
    obeyed: &Obeyed,
) -> Result<(Member, std::sync::mpsc::Receiver<cairn_quorum::Entry>, Key), ReplicaError> {
    let QuorumConfig { id, members, key_file, tls, dir, election_timeout, forwards: _ } =
        quorum.clone();
    let settings = u64::from(crc32c(0, &obeyed.to_bytes()));
    let reach = reach.clone();
    let start = move || {
        let key = read_key(&key_file)?;
        let mut others = members;
        let addr = others.remove(&id).map(|own| own.quorum).unwrap_or_default();
        let tls = tls.map(|tls| open_tls(tls, &addr)).transpose()?;
        let listener = listen(&addr).map_err(|source| ReplicaError::Bind { addr, source })?;
        let others = others.into_iter().map(|(name, member)| (name, member.quorum)).collect();
        let turn = election_timeout / ELECTION_TURNS as u32;
        let credentials = Credentials { key: key.clone(), tls };
        let name = id;
        let options = Options { dir, name, listener, others, credentials, turn, settings, reach };
        let (member, entries) = Member::start(options)?;
        Ok((member, entries, key))
    };
    tokio::task::spawn_blocking(start).await?
}

fn listen(addr: &str) -> io::Result<TcpListener> {
    let mut found = addr.to_socket_addrs()?;
    TcpListener::bind(found.next().ok_or(io::Error::from(io::ErrorKind::NotFound))?)
}

/// What this member, which listens at `addr`, shows the others.
fn open_tls(
    QuorumTls { files, authority }: QuorumTls,
    addr: &str,
) -> Result<Arc<MutualTls>, ReplicaError> {
    let certificate = files.certificate.clone();
    let tls = MutualTls::open(files, &authority)?;
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    match tls.is_of(host) {
        true => Ok(Arc::new(tls)),
        false => Err(ReplicaError::NotNamed { certificate, host: host.to_string() }),
    }
}

fn read_key(path: &Path) -> Result<Key, ReplicaError> {
    let failed = |source| ReplicaError::Key { path: path.to_owned(), source };
    let text = std::fs::read(path).map_err(failed)?;
    Key::new(text.trim_ascii()).ok_or_else(|| {
        let short = "the key is too short: write 32 random bytes in hexadecimal digits there";
        failed(io::Error::new(io::ErrorKind::InvalidData, short))
    })
}
