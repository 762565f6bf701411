//! How long a client waits, and how much it takes.

use crate::reach::Reach;
use cairn_security::client::Credentials;
use cairn_wire::rpc;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Timeouts and limits of an [`RpcClient`](super::RpcClient). `Default` is Hadoop's defaults.
#[derive(Clone, Debug)]
pub struct RpcClientOptions {
    /// `ipc.client.connect.timeout`.
    pub connect_timeout: Duration,
    /// `ipc.client.rpc-timeout.ms`: how long a call waits for its answer.
    pub call_timeout: Duration,
    /// `ipc.ping.interval`: how often the server is pinged while answers are due.
    pub ping_interval: Duration,
    /// `ipc.client.connection.maxidletime`: a connection without calls is closed after this.
    pub idle_timeout: Duration,
    /// `ipc.maximum.response.length`: bytes of the longest answer taken.
    pub max_response_len: u32,
    /// Who acts for the user of the calls, if that is another.
    pub real_user: Option<String>,
    /// What shows who the client is; `None` where it only says so.
    pub credentials: Option<SharedCredentials>,
    /// What it and others have seen, for a client that may be answered by followers.
    pub last_seen: Option<LastSeen>,
    /// To whom connections are made.
    pub reach: Reach,
}

/// The last entry of the namespace that any of some clients has seen. Who answers them is to have it.
///
/// Source: Hadoop 3.5.0 `ClientGSIContext`.
#[derive(Clone, Debug)]
pub struct LastSeen(Arc<AtomicI64>);

impl Default for LastSeen {
    fn default() -> LastSeen {
        LastSeen(Arc::new(AtomicI64::new(i64::MIN)))
    }
}

impl LastSeen {
    /// Its number; the least there is for none.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    /// One of the clients has seen that entry.
    pub fn see(&self, entry: i64) {
        self.0.fetch_max(entry, Ordering::AcqRel);
    }
}

/// What shows who a client is.
#[derive(Clone)]
pub struct SharedCredentials(pub Arc<dyn Credentials>);

impl fmt::Debug for SharedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedCredentials")
    }
}

impl Default for RpcClientOptions {
    fn default() -> RpcClientOptions {
        RpcClientOptions {
            connect_timeout: Duration::from_secs(20),
            call_timeout: Duration::from_secs(120),
            ping_interval: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(10),
            max_response_len: rpc::MAX_FRAME_LEN,
            real_user: None,
            credentials: None,
            last_seen: None,
            reach: Reach::default(),
        }
    }
}
