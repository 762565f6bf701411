//! One connection: calls go out as long as its window is not full, and answers come back in any order.

use crate::nodes::{self, Nodes};
use crate::ops::{Op, Step};
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcRequestHeaderProto, RpcResponseHeaderProto,
    UserInformationProto,
};
use cairn_wire::proto::hdfs as pb;
use cairn_wire::rpc::{self, Preamble};
use prost::Message;
use std::ops::Range;
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

/// Room for what comes, at least.
const ROOM: usize = 256 << 10;

/// A connection with its buffers.
pub struct Connection {
    stream: TcpStream,
    header: RpcRequestHeaderProto,
    /// Second headers of calls as they are sent, by protocol and method.
    methods: Vec<((&'static str, &'static str), Vec<u8>)>,
    out: Vec<u8>,
    input: Vec<u8>,
    /// What of `input` has come and was not looked at.
    unread: Range<usize>,
}

/// Its call, and the bytes of an answer's message with their length before them, or an exception.
pub type Answer<'a> = (i32, Result<&'a [u8], String>);

/// Call and status of an answer that is no exception, whose other fields do not matter.
fn succeeded(header: &[u8]) -> Option<i32> {
    let [0x08, rest @ ..] = header else { return None };
    let (call_id, used) = rpc::varint(rest, "call id").ok()??;
    rest[used..].starts_with(&[0x10, 0]).then_some(call_id as i32)
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
        let header = rpc::request_header(0, 0, &client_id);
        let input = vec![0; 2 * ROOM];
        Ok(Connection { stream, header, methods: Vec::new(), out, input, unread: 0..0 })
    }

    /// Puts a call into the buffer.
    pub fn put(
        &mut self,
        call_id: i32,
        protocol: &'static str,
        method: &'static str,
        body: &impl Message,
    ) {
        self.header.call_id = call_id;
        let name = (protocol, method);
        let known = self.methods.iter().position(|(known, _)| *known == name);
        let known = known.unwrap_or_else(|| {
            let request = RequestHeaderProto {
                method_name: method.to_string(),
                declaring_class_protocol_name: protocol.to_string(),
                client_protocol_version: 1,
            };
            self.methods.push((name, request.encode_length_delimited_to_vec()));
            self.methods.len() - 1
        });
        let request = &self.methods[known].1;
        let len = rpc::delimited_len(&self.header) + request.len() + rpc::delimited_len(body);
        self.out.extend_from_slice(&(len as u32).to_be_bytes());
        rpc::put_delimited(&self.header, &mut self.out);
        self.out.extend_from_slice(request);
        rpc::put_delimited(body, &mut self.out);
    }

    pub async fn flush(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.out).await.map_err(|error| error.to_string())?;
        self.out.clear();
        Ok(())
    }

    /// Takes in what has come, a byte at least.
    pub async fn fill(&mut self) -> Result<(), String> {
        if self.input.len() - self.unread.end < ROOM {
            self.input.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            if self.input.len() - self.unread.end < ROOM {
                self.input.resize(2 * self.input.len(), 0);
            }
        }
        let read = self.stream.read(&mut self.input[self.unread.end..]).await;
        match read.map_err(|error| error.to_string())? {
            0 => Err("the NameNode has closed a connection".to_string()),
            count => {
                self.unread.end += count;
                Ok(())
            }
        }
    }

    /// The next answer that is there.
    pub fn next_answer(&mut self) -> Result<Option<Answer<'_>>, String> {
        let unread = &self.input[self.unread.clone()];
        let Some((prefix, rest)) = unread.split_first_chunk() else { return Ok(None) };
        let Some(frame) = rest.get(..u32::from_be_bytes(*prefix) as usize) else {
            return Ok(None);
        };
        self.unread.start += 4 + frame.len();
        let short = || "an answer ends inside its header".to_string();
        let len = rpc::varint(frame, "header").map_err(|error| error.to_string())?;
        let (len, used) = len.ok_or_else(short)?;
        let header = frame.get(used..used + len as usize).ok_or_else(short)?;
        let message = &frame[used + header.len()..];
        if let Some(call_id) = succeeded(header) {
            return Ok(Some((call_id, Ok(message))));
        }
        let header = RpcResponseHeaderProto::decode(header).map_err(|error| error.to_string())?;
        let answer = match header.status {
            0 => Ok(message),
            _ => Err(format!(
                "{}: {}",
                header.exception_class_name.unwrap_or_default(),
                header.error_msg.unwrap_or_default()
            )),
        };
        Ok(Some((header.call_id as i32, answer)))
    }

    /// One call, alone.
    pub async fn call<R: Message + Default>(
        &mut self,
        protocol: &'static str,
        method: &'static str,
        body: &impl Message,
    ) -> Result<R, String> {
        self.put(0, protocol, method, body);
        self.flush().await?;
        loop {
            if let Some((_, answer)) = self.next_answer()? {
                let message = answer.map_err(|error| format!("{method}: {error}"))?;
                return R::decode_length_delimited(message)
                    .map_err(|error| format!("{method}: {error}"));
            }
            self.fill().await?;
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
        connection.fill().await?;
        let mut written = Vec::new();
        while let Some((id, answer)) = connection.next_answer()? {
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
            Step::Placed(_, located) => Some(&**located),
            _ => None,
        });
        if let Some(nodes) = &nodes {
            nodes.received(&mut connection, blocks);
        }
        if written
            .iter()
            .any(|at| matches!(slots[*at], Some(Slot { step: Step::Incomplete(..), .. })))
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
