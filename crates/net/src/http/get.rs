//! One page of another server, got whole.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::handshake;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tls::TlsTrust;

/// A server at `http://host:port` or `https://host:port`, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its host.
    pub host: String,
    port: u16,
    is_secure: bool,
    /// What is before each path.
    folder: String,
}

impl Place {
    /// Of a URL. `None` where that is none.
    pub fn of(url: &str) -> Option<Place> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let (is_secure, usual) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return None,
        };
        let (authority, folder) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, usual),
        };
        let (host, folder) = (host.to_owned(), folder.trim_end_matches('/').to_owned());
        (!host.is_empty()).then_some(Place { host, port, is_secure, folder })
    }

    /// Whether it is asked by TLS.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Asks for a path with its query, and with the proof of who asks in a header, if there is one. Gives the status and up
    /// to `len_max` bytes of the answer; fails where there are more, or it takes longer than `patience`.
    pub async fn get(
        &self,
        target: &str,
        trust: Option<&TlsTrust>,
        proof: Option<&str>,
        len_max: usize,
        patience: Duration,
    ) -> io::Result<(u16, Vec<u8>)> {
        let asked = async {
            let host = self.host.trim_matches(['[', ']']);
            let stream = TcpStream::connect((host, self.port)).await?;
            match (self.is_secure, trust) {
                (false, _) => self.ask(stream, target, proof, len_max).await,
                (true, Some(trust)) => {
                    self.ask(trust.connect(host, stream).await?, target, proof, len_max).await
                }
                (true, None) => Err(io::Error::other("nobody is trusted by TLS")),
            }
        };
        timeout(patience, asked).await?
    }

    async fn ask<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
        &self,
        stream: S,
        target: &str,
        proof: Option<&str>,
        len_max: usize,
    ) -> io::Result<(u16, Vec<u8>)> {
        let (mut sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let mut request = hyper::Request::get(format!("{}{target}", self.folder))
            .header(HOST, format!("{}:{}", self.host, self.port))
            .header(ACCEPT, "application/json");
        if let Some(proof) = proof {
            request = request.header(AUTHORIZATION, proof);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
        let answered = async {
            let answer = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), len_max).collect().await;
            Ok((status, body.map_err(io::Error::other)?.to_bytes().to_vec()))
        };
        tokio::pin!(answered, connection);
        tokio::select! {
            done = &mut answered => done,
            // What has come before the end is still there to be read.
            _ = &mut connection => answered.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn places_are_named_by_urls() {
        let place = |url| {
            let Place { host, port, is_secure, folder } = Place::of(url)?;
            Some(format!("{host} {port} {is_secure} {folder}"))
        };
        assert_eq!(place("http://a").as_deref(), Some("a 80 false "));
        assert_eq!(place(" https://a:1/b/ ").as_deref(), Some("a 1 true /b"));
        assert_eq!(place("http://[::1]:6080").as_deref(), Some("[::1] 6080 false "));
        assert_eq!(place("https://[::1]").as_deref(), Some("[::1] 443 true "));
        for wrong in ["a", "ftp://a", "http://", "http://a:x"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_page_is_got_whole_or_not_at_all() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = Place::of(&format!("http://{}/r", listener.local_addr().unwrap())).unwrap();
        let ask = |len_max| {
            let place = place.clone();
            async move {
                place
                    .get("/a?b=c", None, Some("Negotiate x"), len_max, Duration::from_secs(5))
                    .await
            }
        };
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntext";
        for (answer, len_max, got) in [
            (whole, 4, Some((200, b"text".to_vec()))),
            (whole, 3, None),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end", 99, Some((200, b"until the end".to_vec()))),
            ("HTTP/1.1 304 Not Modified\r\n\r\n", 0, Some((304, Vec::new()))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntext", 9, None),
            ("nothing", 9, None),
            ("", 9, None),
        ] {
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let len = stream.read(&mut head).await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                String::from_utf8_lossy(&head[..len]).into_owned()
            };
            let (head, told) = tokio::join!(serve, ask(len_max));
            assert!(head.starts_with("GET /r/a?b=c HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("authorization: Negotiate x\r\n"), "{head}");
            assert_eq!(told.ok(), got, "{answer}");
        }
    }
}
