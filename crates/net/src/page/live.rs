//! What has changed on a page, by server-sent events: one stream for each page that is looked at.
//!
//! Source: WHATWG HTML, "Server-sent events".

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{Page, is_cross_site};
use crate::Boxed;
use crate::http::{Answer, Body, Handler, Method, Request, Response, Streamed};
use cairn_process::lasting;

/// The path of the streams; their parameter `page` says of which page.
pub const PATH: &str = "/live";

/// Streams at a time. Who gets none asks for the page again now and then.
const STREAMS_MAX: usize = 32;
/// How often a page is made.
const PERIOD: Duration = Duration::from_secs(2);
/// A stream ends then; a browser that still looks begins another one.
const LIFE: Duration = Duration::from_secs(15 * 60);
/// How long who looks may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Nothing is sent for no longer than that, lest something in between take the connection for dead.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Makes a page; `None` if there is none there.
pub type Make = dyn Fn(&Request) -> Option<Page> + Send + Sync;

/// Answers requests for streams.
pub struct Live {
    make: Arc<Make>,
    turns: Arc<Semaphore>,
}

impl Live {
    /// Streams of the pages that `make` makes.
    pub fn new(make: impl Fn(&Request) -> Option<Page> + Send + Sync + 'static) -> Live {
        Live { make: Arc::new(make), turns: Arc::new(Semaphore::new(STREAMS_MAX)) }
    }

    fn begin(&self, request: &Request) -> Answer {
        if request.method != Method::GET || is_cross_site(request) {
            return Response::error(405, "this is for pages of this server").into();
        }
        let page = request.param("page").and_then(|page| Request::new(Method::GET, page));
        let Some(page) = page else { return Response::error(400, "which page?").into() };
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return Response::error(503, "too many look already").into();
        };
        let (sender, body) = mpsc::channel(1);
        tokio::spawn(send(Arc::clone(&self.make), page, sender, turn));
        Answer::Streamed(Streamed::new("text/event-stream; charset=utf-8", body))
    }
}

impl Handler for Live {
    fn answer(&self, request: Request, _body: Body) -> Boxed<'_, Answer> {
        Box::pin(async move { self.begin(&request) })
    }
}

/// Sends the regions of a page as they change. The first time all of them: the page itself may be older.
async fn send(
    make: Arc<Make>,
    page: Request,
    sender: mpsc::Sender<Bytes>,
    _turn: OwnedSemaphorePermit,
) {
    let (end, mut sent) = (Instant::now() + LIFE, HashMap::<&'static str, String>::new());
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (page, mut last) = (Arc::new(page), Instant::now());
    while Instant::now() < end {
        tokio::select! {
            () = sender.closed() => return,
            _ = ticks.tick() => {}
        }
        let (make, page) = (Arc::clone(&make), Arc::clone(&page));
        // It looks at what others lock.
        let Some(made) = lasting::blocking(move || make(&page)).await else { break };
        let mut out = String::new();
        for region in made.regions {
            if sent.get(region.id) != Some(&region.html) {
                // JSON has no line's end in it.
                out.push_str("data: ");
                out.push_str(&json!({"id": region.id, "html": region.html}).to_string());
                out.push_str("\n\n");
                sent.insert(region.id, region.html);
            }
        }
        if out.is_empty() && last.elapsed() >= SILENCE_MAX {
            out.push_str(":\n\n");
        }
        if !out.is_empty() {
            last = Instant::now();
            match timeout(PATIENCE, sender.send(out.into())).await {
                Ok(Ok(())) => {}
                _ => return,
            }
        }
    }
    let _ = sender.try_send(Bytes::new());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Limits, Site, serve};
    use crate::page::Region;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    fn page(count: u64) -> Page {
        let region = |id, html: String| Region { id, html };
        Page {
            title: "t".into(),
            server: "s".into(),
            places: &[],
            place: "/",
            regions: vec![
                region("count", format!("<b>{count}</b>\n")),
                region("rest", "always".into()),
            ],
            is_live: true,
        }
    }

    async fn ask(addr: std::net::SocketAddr, target: &str, more: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    async fn status(mut stream: BufReader<TcpStream>) -> (String, BufReader<TcpStream>) {
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stream_tells_what_changes_and_there_are_so_many() {
        let count = Arc::new(AtomicU64::new(0));
        let made = Arc::clone(&count);
        let live = Live::new(move |request| {
            (request.path == "/a").then(|| page(made.load(Ordering::SeqCst)))
        });
        let handler = Some(crate::http::SharedHandler(Arc::new(live)));
        let site = Site::new(|_: &Request| Response::ok("text/plain", "page".into()).into());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let site = Arc::new(site.with(PATH, handler));
        tokio::spawn(serve(listener, site, Limits::default(), std::future::pending()));

        let lines = ask(addr, "/live?page=/a?x=%2525", "").await;
        let mut lines = lines.lines();
        let mut next = async || loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str::<serde_json::Value>(data).unwrap();
            }
        };
        let first = [next().await, next().await];
        assert_eq!((&first[0]["id"], &first[0]["html"]), (&"count".into(), &"<b>0</b>\n".into()));
        assert_eq!(first[1]["id"], "rest");
        count.store(1, Ordering::SeqCst);
        let then = next().await;
        assert_eq!((&then["id"], &then["html"]), (&"count".into(), &"<b>1</b>\n".into()));

        for (target, header, code) in [
            ("/live", "", "400"),
            ("/live?page=http://x/", "", "400"),
            ("/live?page=/a", "Sec-Fetch-Site: cross-site\r\n", "405"),
        ] {
            assert_eq!(status(ask(addr, target, header).await).await.0, code, "{target}");
        }
        let mut looking = Vec::new();
        for _ in 1..STREAMS_MAX {
            let (code, stream) = status(ask(addr, "/live?page=/a", "").await).await;
            assert_eq!(code, "200");
            looking.push(stream);
        }
        assert_eq!(status(ask(addr, "/live?page=/a", "").await).await.0, "503");
        assert_eq!(status(ask(addr, "/", "").await).await.0, "200");
        // Who goes away leaves the turn to others.
        looking.clear();
        while status(ask(addr, "/live?page=/a", "").await).await.0 != "200" {}
    }
}
