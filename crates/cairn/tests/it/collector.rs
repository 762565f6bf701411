//! A collector of traces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// It takes everything.
pub struct Collector {
    pub endpoint: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    pub fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::<Mutex<Vec<String>>>::default();
        let taken = bodies.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut head, mut len) = (String::new(), 0);
                while stream.read_line(&mut head).unwrap() > 2 {
                    let line = head.to_ascii_lowercase();
                    if let Some(value) = line.strip_prefix("content-length:") {
                        len = value.trim().parse().unwrap();
                    }
                    head.clear();
                }
                let mut body = vec![0; len];
                stream.read_exact(&mut body).unwrap();
                taken.lock().unwrap().push(String::from_utf8(body).unwrap());
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                stream.get_mut().write_all(answer).unwrap();
            }
        });
        Collector { endpoint, bodies }
    }

    /// The bodies of all requests so far.
    pub fn told(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}
