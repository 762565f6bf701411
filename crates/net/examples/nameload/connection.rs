//! One connection: calls go out, and answers come back in any order.

use cairn_wire::proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcRequestHeaderProto, RpcResponseHeaderProto,
    UserInformationProto,
};
use cairn_wire::proto::hdfs as pb;
use cairn_wire::rpc::{self, Preamble};
use prost::Message;
use std::ops::Range;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that each block pretends to have.
pub const BLOCK_LEN: u64 = 1 << 20;

/// The NameNode under load.
#[derive(Clone)]
pub struct Load {
    pub addr: String,
    pub superuser: String,
    /// Whether members of a quorum that follow may answer reads.
    pub reads_anywhere: bool,
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

    /// Has members that follow answer, whatever they have applied.
    pub fn read_anywhere(&mut self) {
        self.header.state_id = Some(0);
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

/// The block of an `addBlock` as `complete` tells it.
pub fn whole(located: &pb::LocatedBlockProto, len: u64) -> pb::ExtendedBlockProto {
    pb::ExtendedBlockProto { num_bytes: Some(len), ..located.b.clone() }
}
