//! The answer on its way: text that gathers until a piece is worth sending.

use super::stop::Stop;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

/// Bytes that are sent without waiting for more.
const PIECE_LEN: usize = 16 * 1024;

/// Text, or findings as JSON lines: what is of the other kind is left out.
pub(super) struct Out {
    sender: mpsc::Sender<Bytes>,
    json: bool,
    buffer: String,
}

impl Out {
    pub(super) fn new(sender: mpsc::Sender<Bytes>, json: bool) -> Out {
        Out { sender, json, buffer: String::new() }
    }

    /// Adds text.
    pub(super) fn print(&mut self, text: &str) {
        if !self.json {
            self.buffer.push_str(text);
        }
    }

    /// Adds a line of JSON.
    pub(super) fn finding(&mut self, finding: &Value) {
        if self.json {
            self.buffer.push_str(&finding.to_string());
            self.buffer.push('\n');
        }
    }

    /// Sends what has gathered if it is long enough.
    pub(super) async fn pass_on(&mut self) -> Result<(), Stop> {
        if self.buffer.len() >= PIECE_LEN { self.flush().await } else { Ok(()) }
    }

    /// Sends what has gathered.
    pub(super) async fn flush(&mut self) -> Result<(), Stop> {
        if self.sender.is_closed() {
            return Err(Stop::Gone);
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        self.sender.send(piece).await.map_err(|_| Stop::Gone)
    }

    /// Sends the rest, and the mark of a good end.
    pub(super) async fn finish(mut self) {
        if self.flush().await.is_ok() {
            // A client that has gone needs no mark.
            let _ = self.sender.send(Bytes::new()).await;
        }
    }
}
