//! Calls to the NameNode, retried where Hadoop's client retries them.
//!
//! `RetriableException` and a standby are waited out; everything else goes to the caller, who knows
//! what a `NotReplicatedYetException` means.

use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::types::Backoff;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use std::time::{Duration, Instant};

/// The protocol that clients speak to NameNodes.
const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

/// First and longest wait between tries.
const RETRY_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The NameNode of one file system.
#[derive(Clone)]
pub(crate) struct NameNode {
    rpc: RpcClient,
    addr: String,
    retry_for: Duration,
}

impl NameNode {
    /// A NameNode at the address of `config`; connects at the first call.
    pub(crate) fn new(config: &ClientConfig) -> NameNode {
        NameNode::speaking(config, CLIENT_PROTOCOL)
    }

    /// The same, with the Java name of another protocol.
    pub(crate) fn speaking(config: &ClientConfig, protocol: &'static str) -> NameNode {
        let options =
            RpcClientOptions { call_timeout: config.rpc_timeout, ..RpcClientOptions::default() };
        let rpc = RpcClient::new(&config.namenode, protocol, config.user.as_str(), options);
        NameNode { rpc, addr: config.namenode.clone(), retry_for: config.retry_for }
    }

    /// One call.
    pub(crate) async fn call<Req, Resp>(&self, method: &'static str, request: &Req) -> Result<Resp>
    where
        Req: prost::Message,
        Resp: prost::Message + Default,
    {
        let deadline = Instant::now() + self.retry_for;
        let mut backoff = Backoff::new(RETRY_WAITS.0, RETRY_WAITS.1);
        // All tries have one number: the NameNode's retry cache knows a call that it has executed.
        let mut number = self.rpc.new_call();
        let mut is_told = false;
        loop {
            let error = match self.rpc.call_numbered(method, request, number).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if !is_retriable(&error) || Instant::now() >= deadline {
                return Err(self.error(error));
            }
            if std::mem::replace(&mut is_told, true) {
                tracing::debug!(method, %error, "retrying a call to the NameNode");
            } else {
                tracing::warn!(%error, "the NameNode is waited for");
            }
            tokio::time::sleep(backoff.step()).await;
            number.retry_count += 1;
        }
    }

    fn error(&self, error: RpcError) -> ClientError {
        match error {
            RpcError::Remote(remote) => remote_error(remote),
            source => ClientError::NameNode { addr: self.addr.clone(), source },
        }
    }
}

/// An exception of the other side as our error, without the stack trace that Hadoop appends.
pub(crate) fn remote_error(remote: RemoteException) -> ClientError {
    let message = remote.message.split("\n\tat ").next().unwrap_or_default().to_string();
    ClientError::Remote { class: remote.class, message }
}

fn is_retriable(error: &RpcError) -> bool {
    match error {
        RpcError::Remote(remote) => remote.is(class::RETRIABLE) || remote.is(class::STANDBY),
        RpcError::Connect { .. } | RpcError::Lost { .. } => true,
        _ => false,
    }
}
