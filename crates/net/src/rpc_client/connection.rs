//! One connection of a client: a task that writes requests, reads answers, pings and goes away.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use cairn_security::sasl::{Layer, Seal};
use cairn_wire::RemoteException;
use cairn_wire::proto::common::{
    IpcConnectionContextProto, RpcResponseHeaderProto,
    RpcResponseHeaderProtoRpcErrorCodeProto as Code,
    RpcResponseHeaderProtoRpcStatusProto as Status, UserInformationProto,
};
use cairn_wire::rpc::{self, AuthProtocol, Preamble};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::options::{RpcClientOptions, SharedCredentials};
use super::sasl::{Known, authenticate};
use crate::channel::{self, Channel, Side};
use crate::frame::{FrameError, FrameReader};
use crate::reach::Reach;
use cairn_process::disk_work::movable;

/// Requests that wait to be written, at most; further callers wait.
const QUEUE: usize = 64;
/// No more requests are taken while this many bytes wait to be written.
const UNWRITTEN: usize = 1 << 20;
/// Calls that were given up are forgotten each time so many more are due.
const PRUNE: usize = 256;

/// Why a connection has no answer.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The connection was gone before the request was written.
    NotSent,
    /// The server's exception.
    Remote(RemoteException),
    /// The connection failed while the answer was due.
    Lost(String),
}

type Answer = Result<Bytes, Failure>;

struct Request {
    call_id: i32,
    frame: Bytes,
    answer: oneshot::Sender<Answer>,
}

/// A handle of the connection's task; the task ends when all handles are gone.
#[derive(Clone)]
pub(super) struct Connection {
    requests: mpsc::Sender<Request>,
}

/// Tries each address of a name.
async fn connect(name: &str, reach: &Reach) -> io::Result<TcpStream> {
    if !reach.can_be_cut() {
        return TcpStream::connect(name).await;
    }
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for addr in lookup_host(name).await? {
        match reach.make(addr, TcpStream::connect(addr)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

impl Connection {
    /// Connects, shows who the client is if it can, and sends the context (not waiting for the server to like it).
    pub(super) async fn open(
        addr: &str,
        protocol: &str,
        user: &str,
        client_id: [u8; 16],
        options: &RpcClientOptions,
    ) -> io::Result<Connection> {
        let connecting = timeout(options.connect_timeout, connect(addr, &options.reach));
        let stream = connecting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        stream.set_nodelay(true)?;
        let (source, mut sink) = stream.into_split();
        let mut reader = FrameReader::new(Channel::new(source));
        let known = match &options.credentials {
            None => Known::Simple,
            Some(SharedCredentials(credentials)) => {
                let auth = AuthProtocol::Sasl.byte();
                sink.write_all(&Preamble { auth, ..Preamble::simple() }.encode()).await?;
                authenticate(&mut reader, &mut sink, &**credentials, options).await?
            }
        };
        let (effective_user, real_user, layer) = match known {
            Known::Simple => (Some(user.to_owned()), options.real_user.clone(), None),
            // Who the client is has been shown. It only tells for whom it acts.
            Known::Kerberos(layer) => {
                (options.real_user.is_some().then(|| user.to_owned()), None, layer)
            }
            Known::Token(layer) => (None, None, layer),
        };
        let context = IpcConnectionContextProto {
            user_info: Some(UserInformationProto { effective_user, real_user }),
            protocol: Some(protocol.to_owned()),
        };
        let header =
            rpc::request_header(rpc::CALL_ID_CONNECTION_CONTEXT, rpc::RETRY_COUNT_NONE, &client_id);
        let context = rpc::encode_frame(&header, Some(&context));
        let mut hello = BytesMut::new();
        if options.credentials.is_none() {
            hello.extend_from_slice(&Preamble::simple().encode());
        }
        let seal = match layer {
            Some(Layer { seal, open }) => {
                reader.enclose(open, Side::Client, options.max_response_len);
                Some(seal)
            }
            None => None,
        };
        let (requests, queue) = mpsc::channel(QUEUE);
        let mut task = Task {
            reader,
            sink,
            seal,
            // Written with the first request.
            unwritten: hello,
            queue,
            due: HashMap::new(),
            client_id,
            options: options.clone(),
        };
        task.put(&context)?;
        tokio::spawn(movable(task.run()));
        Ok(Connection { requests })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Sends one request frame and waits for the response message, its length before it.
    pub(super) async fn exchange(&self, call_id: i32, frame: Bytes) -> Answer {
        let (answer, received) = oneshot::channel();
        let request = Request { call_id, frame, answer };
        self.requests.send(request).await.map_err(|_| Failure::NotSent)?;
        received.await.unwrap_or_else(|_| Err(Failure::Lost("the connection's task ended".into())))
    }
}

struct Task {
    reader: FrameReader<Channel<OwnedReadHalf>>,
    sink: OwnedWriteHalf,
    /// What encloses everything, if anything does.
    seal: Option<Box<dyn Seal>>,
    unwritten: BytesMut,
    queue: mpsc::Receiver<Request>,
    due: HashMap<i32, oneshot::Sender<Answer>>,
    client_id: [u8; 16],
    options: RpcClientOptions,
}

/// What happened next on a connection.
enum Event {
    Request(Option<Request>),
    Frame(Result<Option<Bytes>, FrameError>),
    Written(io::Result<usize>),
    Tick,
}

impl Task {
    async fn run(mut self) {
        let failure = self.serve().await;
        debug!(?failure, "RPC client connection ended");
        self.queue.close();
        while let Ok(request) = self.queue.try_recv() {
            // The caller may have given up waiting; that is fine here and below.
            let _ = request.answer.send(Err(Failure::NotSent));
        }
        for (_, answer) in self.due.drain() {
            let _ = answer.send(Err(failure.clone()));
        }
    }

    /// Serves until nobody needs the connection or it fails: then with the failure of the calls
    /// that are due.
    async fn serve(&mut self) -> Failure {
        let mut active = Instant::now();
        loop {
            let (idle, ping) = (self.options.idle_timeout, self.options.ping_interval);
            let wait = if self.due.is_empty() { idle } else { ping };
            let may_take = self.unwritten.len() < UNWRITTEN;
            // The hello waits for the first request, and goes out with it.
            let may_write = !self.unwritten.is_empty() && !self.due.is_empty();
            let limit = self.options.max_response_len;
            let event = tokio::select! {
                request = self.queue.recv(), if may_take => Event::Request(request),
                written = self.sink.write(&self.unwritten), if may_write => Event::Written(written),
                // Calls have a time limit each, so frames need none.
                frame = self.reader.read_frame(limit, Duration::MAX) => Event::Frame(frame),
                () = sleep_until(active + wait) => Event::Tick,
            };
            if !matches!(event, Event::Written(_)) {
                active = Instant::now();
            }
            let handled = match event {
                Event::Request(None) => Err(Failure::NotSent),
                Event::Request(Some(request)) => self.take_request(request),
                Event::Written(Ok(0)) => Err(Failure::Lost("cannot write".into())),
                Event::Written(Ok(written)) => {
                    self.unwritten.advance(written);
                    Ok(())
                }
                Event::Written(Err(error)) => Err(Failure::Lost(error.to_string())),
                Event::Frame(Ok(Some(frame))) => self.take_answer(frame),
                Event::Frame(Ok(None)) => Err(Failure::Lost("closed by the server".into())),
                Event::Frame(Err(error)) => Err(Failure::Lost(error.to_string())),
                Event::Tick => self.tick(),
            };
            if let Err(failure) = handled {
                return failure;
            }
        }
    }

    fn take_request(&mut self, request: Request) -> Result<(), Failure> {
        if self.due.len() % PRUNE == PRUNE - 1 {
            self.due.retain(|_, answer| !answer.is_closed());
        }
        self.due.insert(request.call_id, request.answer);
        self.put(&request.frame).map_err(|error| Failure::Lost(error.to_string()))
    }

    /// Queues bytes.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(seal) = &mut self.seal else {
            self.unwritten.extend_from_slice(bytes);
            return Ok(());
        };
        let mut frames = VecDeque::new();
        channel::sealed(&mut **seal, Side::Client, bytes, &mut frames)
            .map_err(|error| io::Error::other(error.to_string()))?;
        frames.iter().for_each(|frame| self.unwritten.extend_from_slice(frame));
        Ok(())
    }

    /// Source: Hadoop 3.5.0 `Client.Connection#receiveRpcResponse`.
    fn take_answer(&mut self, mut frame: Bytes) -> Result<(), Failure> {
        let header: RpcResponseHeaderProto =
            rpc::take_delimited(&mut frame, "RpcResponseHeaderProto")
                .map_err(|error| Failure::Lost(error.to_string()))?;
        let owner = header.client_id();
        if !owner.is_empty() && owner != self.client_id {
            return Err(Failure::Lost("an answer for another client".into()));
        }
        if let (Some(last_seen), Some(entry)) = (&self.options.last_seen, header.state_id) {
            last_seen.see(entry);
        }
        let answer = match header.status() {
            Status::Success => Ok(frame),
            Status::Error => Err(Failure::Remote(exception(header.clone()))),
            Status::Fatal => return Err(Failure::Remote(exception(header))),
        };
        // Nobody waits for it any more when the call timed out.
        if let Some(due) = self.due.remove(&(header.call_id as i32)) {
            let _ = due.send(answer);
        }
        Ok(())
    }

    /// Nothing happened for a while: pings the server when answers are due, else ends.
    fn tick(&mut self) -> Result<(), Failure> {
        self.due.retain(|_, answer| !answer.is_closed());
        if self.due.is_empty() {
            return Err(Failure::NotSent);
        }
        let header = rpc::request_header(rpc::CALL_ID_PING, rpc::RETRY_COUNT_NONE, &self.client_id);
        let ping = rpc::encode_frame(&header, None::<&RpcResponseHeaderProto>);
        self.put(&ping).map_err(|error| Failure::Lost(error.to_string()))
    }
}

/// Source: Hadoop 3.5.0 `Client.Connection#receiveRpcResponse`, `RemoteException`.
fn exception(header: RpcResponseHeaderProto) -> RemoteException {
    let code = header.error_detail.and_then(|code| Code::try_from(code).ok());
    RemoteException {
        class: header.exception_class_name.unwrap_or_default(),
        message: header.error_msg.unwrap_or_default(),
        code: code.unwrap_or(Code::ErrorApplication),
    }
}
