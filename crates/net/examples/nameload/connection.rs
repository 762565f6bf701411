//! One connection: calls go out as long as its window is not full, and answers come back in any order.

use crate::nodes::{self, Nodes};
use crate::ops::{Op, Step};
use bytes::{Buf, Bytes, BytesMut};
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcResponseHeaderProto, UserInformationProto,
};
use cairn_wire::proto::hdfs as pb;
use cairn_wire::rpc::{self, Preamble};
use prost::Message;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Users that the connections belong to, in turn.
const USERS: usize = 8;
/// How long to wait before a file is completed again that lacks reports.
const COMPLETE_AGAIN: Duration = Duration::from_millis(2);

const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

/// The NameNode under load.
#[derive(Clone)]
pub struct Load {
    pub addr: String,
    pub superuser: String,
}

/// What a connection has seen.
#[derive(Default)]
pub struct Outcome {
    pub latencies_us: Vec<u32>,
    pub failed: u64,
    pub first_error: Option<String>,
}

/// A connection with its buffers.
pub struct Connection {
    stream: TcpStream,
    client_id: [u8; 16],
    out: Vec<u8>,
    input: BytesMut,
}

impl Connection {
    pub async fn open(addr: &str, user: &str, protocol: &str) -> Result<Connection, String> {
        let stream = TcpStream::connect(addr).await.map_err(|error| format!("{addr}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let mut client_id = [0; 16];
        getrandom::fill(&mut client_id).map_err(|error| error.to_string())?;
        let context = IpcConnectionContextProto {
            user_info: Some(UserInformationProto {
                effective_user: Some(user.to_string()),
                real_user: None,
            }),
            protocol: Some(protocol.to_string()),
        };
        let header =
            rpc::request_header(rpc::CALL_ID_CONNECTION_CONTEXT, rpc::RETRY_COUNT_NONE, &client_id);
        let mut out = Preamble::simple().encode().to_vec();
        out.extend_from_slice(&rpc::encode_frame(&header, Some(&context)));
        Ok(Connection { stream, client_id, out, input: BytesMut::with_capacity(64 << 10) })
    }

    /// Puts a call into the buffer.
    pub fn put(&mut self, call_id: i32, protocol: &str, method: &str, body: &impl Message) {
        let header = rpc::request_header(call_id, 0, &self.client_id);
        let request = RequestHeaderProto {
            method_name: method.to_string(),
            declaring_class_protocol_name: protocol.to_string(),
            client_protocol_version: 1,
        };
        let len =
            rpc::delimited_len(&header) + rpc::delimited_len(&request) + rpc::delimited_len(body);
        self.out.extend_from_slice(&(len as u32).to_be_bytes());
        rpc::put_delimited(&header, &mut self.out);
        rpc::put_delimited(&request, &mut self.out);
        rpc::put_delimited(body, &mut self.out);
    }

    pub async fn flush(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.out).await.map_err(|error| error.to_string())?;
        self.out.clear();
        Ok(())
    }

    /// The answers that are there, at least one: call id, and the message or an exception.
    pub async fn answers(&mut self) -> Result<Vec<(i32, Result<Bytes, String>)>, String> {
        let mut answers = Vec::new();
        loop {
            while let Some(len) =
                self.input.first_chunk::<4>().map(|b| u32::from_be_bytes(*b) as usize)
            {
                if self.input.len() < 4 + len {
                    break;
                }
                self.input.advance(4);
                let mut frame = self.input.split_to(len).freeze();
                let header: RpcResponseHeaderProto =
                    rpc::take_delimited(&mut frame, "header").map_err(|error| error.to_string())?;
                let answer = match header.status {
                    0 => Ok(frame),
                    _ => Err(format!(
                        "{}: {}",
                        header.exception_class_name.unwrap_or_default(),
                        header.error_msg.unwrap_or_default()
                    )),
                };
                answers.push((header.call_id as i32, answer));
            }
            if !answers.is_empty() {
                return Ok(answers);
            }
            self.input.reserve(64 << 10);
            let read = self.stream.read_buf(&mut self.input).await;
            if read.map_err(|error| error.to_string())? == 0 {
                return Err("the NameNode has closed a connection".to_string());
            }
        }
    }

    /// One call, alone.
    pub async fn call<R: Message + Default>(
        &mut self,
        protocol: &str,
        method: &str,
        body: &impl Message,
    ) -> Result<R, String> {
        self.put(0, protocol, method, body);
        self.flush().await?;
        match self.answers().await?.pop() {
            Some((_, Ok(mut message))) => rpc::take_delimited(&mut message, "answer")
                .map_err(|error| format!("{method}: {error}")),
            Some((_, Err(error))) => Err(format!("{method}: {error}")),
            None => Err(format!("{method}: no answer")),
        }
    }
}

/// A place in the window.
struct Slot {
    number: u64,
    begun: Instant,
    step: Step,
}

/// Sends calls until `calls` have been begun by all connections together, and their answers are here.
pub async fn drive(
    load: &Load,
    index: usize,
    op: &Op,
    calls: u64,
    next: &AtomicU64,
    window: usize,
    nodes: Option<Nodes>,
) -> Result<Outcome, String> {
    let user = if op.needs_superuser() {
        load.superuser.clone()
    } else {
        format!("load{}", index % USERS)
    };
    let mut connection = Connection::open(&load.addr, &user, CLIENT).await?;
    let client = format!("load-{index}");
    let mut slots: Vec<Option<Slot>> = (0..window).map(|_| None).collect();
    let mut free: Vec<usize> = (0..window).collect();
    let mut outcome = Outcome::default();
    // Call ids say which slot, and are never used twice.
    let mut turn = 0_i32;
    let mut call_id = |slot: usize| {
        turn += 1;
        turn * window as i32 + slot as i32
    };
    loop {
        while let Some(slot) = free.pop() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= calls {
                free.push(slot);
                break;
            }
            op.begin(&mut connection, CLIENT, &client, number, call_id(slot));
            slots[slot] = Some(Slot { number, begun: Instant::now(), step: Step::First });
        }
        if free.len() == window {
            return Ok(outcome);
        }
        connection.flush().await?;
        let mut written = Vec::new();
        for (id, answer) in connection.answers().await? {
            if id < 0 || id == nodes::CALL_ID {
                if let Err(error) = answer {
                    outcome.first_error.get_or_insert(error);
                }
                continue;
            }
            let at = id as usize % window;
            let Some(slot) = &mut slots[at] else { continue };
            match answer.and_then(|message| op.answered(&mut slot.step, message)) {
                Ok(true) => {
                    let us = slot.begun.elapsed().as_micros();
                    outcome.latencies_us.push(u32::try_from(us).unwrap_or(u32::MAX));
                }
                Ok(false) => {
                    written.push(at);
                    continue;
                }
                Err(error) => {
                    outcome.failed += 1;
                    outcome.first_error.get_or_insert(error);
                }
            }
            slots[at] = None;
            free.push(at);
        }
        // DataNodes tell of the blocks that were given out, then their files are completed.
        let blocks = written.iter().filter_map(|at| match &slots[*at].as_ref()?.step {
            Step::Placed(located) => Some(&**located),
            _ => None,
        });
        if let Some(nodes) = &nodes {
            nodes.received(&mut connection, blocks);
        }
        if written
            .iter()
            .any(|at| matches!(slots[*at], Some(Slot { step: Step::Incomplete(_), .. })))
        {
            tokio::time::sleep(COMPLETE_AGAIN).await;
        }
        for at in written {
            if let Some(slot) = &mut slots[at] {
                op.go_on(
                    &mut connection,
                    CLIENT,
                    &client,
                    slot.number,
                    call_id(at),
                    &mut slot.step,
                );
            }
        }
    }
}

/// The block of an `addBlock` as `complete` tells it.
pub fn whole(located: &pb::LocatedBlockProto, len: u64) -> pb::ExtendedBlockProto {
    pb::ExtendedBlockProto { num_bytes: Some(len), ..located.b.clone() }
}
