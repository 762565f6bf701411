//! The NameNode's log on a disk that forgets what was not synced.

use crate::rng::Rng;
use cairn_codec::crc::crc32c;
use cairn_namespace::Entry;

/// Bytes before an entry: its length and its CRC32C.
const HEAD_LEN: usize = 8;

/// One file of entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    bytes: Vec<u8>,
    synced: usize,
}

impl Log {
    pub(crate) fn append(&mut self, entry: &Entry) {
        let payload = entry.to_bytes();
        self.bytes.extend((payload.len() as u32).to_le_bytes());
        self.bytes.extend(crc32c(0, &payload).to_le_bytes());
        self.bytes.extend(payload);
    }

    pub(crate) fn sync(&mut self) {
        self.synced = self.bytes.len();
    }

    /// A power cut: of what was not synced, some bytes at the start may be there.
    pub(crate) fn crash(&mut self, rng: &mut Rng) {
        let unsynced = self.bytes.len() - self.synced;
        self.bytes.truncate(self.synced + rng.index(unsynced + 1));
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The whole entries from the one that begins there; a torn one at the end is cut off.
    pub(crate) fn recover(&mut self, from: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut at = from;
        while let Some(head) = self.bytes.get(at..at + HEAD_LEN) {
            let number = |from: usize| {
                let mut four = [0; 4];
                four.copy_from_slice(&head[from..from + 4]);
                u32::from_le_bytes(four)
            };
            let end = at + HEAD_LEN + number(0) as usize;
            let Some(payload) = self.bytes.get(at + HEAD_LEN..end) else { break };
            if crc32c(0, payload) != number(4) {
                break;
            }
            let Ok(entry) = Entry::from_bytes(payload) else { break };
            entries.push(entry);
            at = end;
        }
        self.bytes.truncate(at);
        self.synced = at;
        entries
    }
}
