//! Readers that read acknowledged files all the while, from start to end and at random places, and
//! compare each byte.

use crate::truth::Written;
use cairn_client::{FileSystem, Result};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Reads until it is told to stop.
pub struct Reading {
    files: Arc<Mutex<Vec<Written>>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<usize>,
}

impl Reading {
    pub fn start(fs: FileSystem, seed: u64) -> Reading {
        let files: Arc<Mutex<Vec<Written>>> = Arc::default();
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(read(fs, files.clone(), stopped, Dice::new(seed)));
        Reading { files, stop, task }
    }

    /// Adds a file whose `close` was answered.
    pub fn acknowledged(&self, file: Written) {
        self.files.lock().unwrap().push(file);
    }

    pub fn files(&self) -> Vec<Written> {
        self.files.lock().unwrap().clone()
    }

    /// Ends the reads. Fails if one of them failed, or none was made.
    pub async fn stop(self) {
        self.stop.send(true).unwrap();
        let reads = self.task.await.unwrap();
        assert!(reads > 0, "nothing was read");
    }
}

async fn read(
    fs: FileSystem,
    files: Arc<Mutex<Vec<Written>>>,
    stopped: watch::Receiver<bool>,
    mut dice: Dice,
) -> usize {
    let mut reads = 0;
    while reads == 0 || !*stopped.borrow() {
        let file = {
            let files = files.lock().unwrap();
            (!files.is_empty()).then(|| files[dice.below(files.len())].clone())
        };
        if let Some(file) = file {
            let done = read_once(&fs, &file, &mut dice).await;
            done.unwrap_or_else(|error| panic!("cannot read {}: {error}", file.path));
            reads += 1;
        }
        tokio::time::sleep(Duration::from_millis(8)).await;
    }
    reads
}

async fn read_once(fs: &FileSystem, file: &Written, dice: &mut Dice) -> Result<()> {
    let mut reader = fs.open(&file.path).await?;
    if dice.below(2) == 0 {
        let mut all = Vec::new();
        while let Some(chunk) = reader.next_chunk().await? {
            all.extend_from_slice(&chunk);
        }
        assert!(all == file.data, "{} read from start to end differs", file.path);
    } else {
        let start = dice.below(file.data.len());
        let mut buf = vec![0; 1 + dice.below(file.data.len() - start)];
        let count = reader.read_at(start as u64, &mut buf).await?;
        assert_eq!(count, buf.len(), "{} at {start}", file.path);
        let len = buf.len();
        assert!(buf == file.data[start..start + len], "{} {start}+{len} differs", file.path);
    }
    Ok(())
}

/// Numbers that repeat with their seed (xorshift).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// `count` different numbers below `end`.
    pub fn choose(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..end).collect();
        (0..count).map(|_| all.swap_remove(self.below(all.len()))).collect()
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 8);
        while out.len() < len {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(len);
        out
    }
}
