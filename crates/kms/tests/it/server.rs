//! A server for tests: what it answers is a function of the request.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_kms::{Kms, KmsOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request: method, target and body.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub target: String,
    pub body: String,
}

/// Status and body; `None` closes the connection instead.
pub type Answer = Pin<Box<dyn Future<Output = Option<(u16, String)>> + Send>>;

pub struct Server {
    pub port: u16,
    pub asked: Arc<Mutex<Vec<Asked>>>,
    pub connections: Arc<AtomicUsize>,
}

impl Server {
    /// Serves on a port of 127.0.0.1 until the test ends.
    pub async fn start(answer: impl Fn(Asked) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Server::on(listener, port, Arc::new(answer))
    }

    fn on(
        listener: TcpListener,
        port: u16,
        answer: Arc<impl Fn(Asked) -> Answer + Send + Sync + 'static>,
    ) -> Server {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (log, count) = (Arc::clone(&asked), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move { talk(stream, &log, &*answer).await });
            }
        });
        Server { port, asked, connections }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn kms(&self) -> Kms {
        kms(&format!("127.0.0.1:{}", self.port), KmsOptions::default())
    }
}

/// Two servers on one port of two addresses, which a provider path can name.
pub async fn pair(
    first: impl Fn(Asked) -> Answer + Send + Sync + 'static,
    second: impl Fn(Asked) -> Answer + Send + Sync + 'static,
) -> (Server, Server) {
    loop {
        let one = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = one.local_addr().unwrap().port();
        let Ok(two) = TcpListener::bind(("127.0.0.2", port)).await else { continue };
        let one = Server::on(one, port, Arc::new(first));
        return (one, Server::on(two, port, Arc::new(second)));
    }
}

pub fn kms(servers: &str, options: KmsOptions) -> Kms {
    Kms::new(format!("kms://http@{servers}/kms").parse().unwrap(), "alice", options)
}

/// Options with which a test does not wait for long.
pub fn hasty() -> KmsOptions {
    KmsOptions {
        timeout: Duration::from_millis(300),
        failover_sleep: Duration::from_millis(1),
        ..KmsOptions::default()
    }
}

pub fn text(status: u16, body: impl Into<String>) -> Answer {
    let body = body.into();
    Box::pin(async move { Some((status, body)) })
}

async fn talk(stream: TcpStream, log: &Mutex<Vec<Asked>>, answer: &impl Fn(Asked) -> Answer) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream).await {
        log.lock().unwrap().push(asked.clone());
        let Some((status, body)) = answer(asked).await else { return };
        let head = format!(
            "HTTP/1.1 {status} Words\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let sent = [head.as_bytes(), body.as_bytes()].concat();
        if stream.get_mut().write_all(&sent).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|len| *len > 0)?;
    let mut words = line.split(' ').map(str::to_string);
    let (method, target) = (words.next()?, words.next()?);
    let mut len = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            len = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { method, target, body: String::from_utf8(body).ok()? })
}
