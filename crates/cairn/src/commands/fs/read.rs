//! What of files goes to standard output: `cat`, `head`, `tail`, `text`, and their checksums.

use super::shell::{Ended, Shell, until_told_to_stop};
use super::transfer::read_into;
use anyhow::{Context, Result, bail};
use cairn_client::{ChecksumMode, FileReader, FileStatus, FileSystem};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde_json::json;
use std::io::{Read, Write};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, Stdout};
use tokio::runtime::Handle;

/// What `head` and `tail` show, bytes.
const PART_LEN: u64 = 1024;
/// Bytes read at a time.
const STEP_LEN: usize = 1 << 20;

/// `cairn fs cat`.
#[derive(Debug, clap::Args)]
pub struct Cat {
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Cat {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let mut out = tokio::io::stdout();
        for status in shell.find_all(&self.paths).await {
            let shown = cat(&shell.fs, &status, &mut out).await;
            unless_unread(shell, shown)?;
        }
        Ok(out.flush().await?)
    }
}

async fn cat(fs: &FileSystem, status: &FileStatus, out: &mut Stdout) -> Result<()> {
    if status.is_dir() {
        bail!("{}: Is a directory", status.path);
    }
    read_into(fs, &status.path, out, |_| {}).await
}

/// Complains and goes on, but for a pipe that nobody reads any more: that ends the command.
fn unless_unread(shell: &Shell, shown: Result<()>) -> Result<()> {
    match shown {
        Err(error) if error.is::<std::io::Error>() => Err(error),
        shown => {
            shell.keep(shown);
            Ok(())
        }
    }
}

/// `cairn fs head`.
#[derive(Debug, clap::Args)]
pub struct Head {
    /// How many bytes
    #[arg(short = 'c', long, value_name = "BYTES", default_value_t = PART_LEN)]
    bytes: u64,
    /// The file
    path: String,
}

impl Head {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        for status in shell.find(&self.path).await? {
            let (_, mut reader) = open(shell, &status).await?;
            let mut out = tokio::io::stdout();
            copy(&mut reader, self.bytes, &mut out).await?;
        }
        Ok(())
    }
}

/// `cairn fs tail`.
#[derive(Debug, clap::Args)]
pub struct Tail {
    /// Go on with what is appended, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Milliseconds between two looks at a file that is followed
    #[arg(short, long, value_name = "MS", default_value_t = 5000)]
    sleep: u64,
    /// How many bytes
    #[arg(short = 'c', long, value_name = "BYTES", default_value_t = PART_LEN)]
    bytes: u64,
    /// The file
    path: String,
}

impl Tail {
    pub async fn run(self, shell: &Shell) -> Result<Ended> {
        until_told_to_stop(self.show(shell)).await
    }

    async fn show(&self, shell: &Shell) -> Result<()> {
        let found = shell.find(&self.path).await?;
        let [status] = &found[..] else { bail!("{}: fits more than one file", self.path) };
        let (len, mut reader) = open(shell, status).await?;
        let mut out = tokio::io::stdout();
        let mut shown = len.saturating_sub(self.bytes);
        loop {
            reader.seek(shown);
            shown += copy(&mut reader, u64::MAX, &mut out).await?;
            if !self.follow {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(self.sleep)).await;
            // A reader sees what there was when it was opened.
            let (len, again) = open(shell, status).await?;
            (reader, shown) = (again, shown.min(len));
        }
    }
}

async fn open(shell: &Shell, status: &FileStatus) -> Result<(u64, FileReader)> {
    if status.is_dir() {
        bail!("{}: Is a directory", status.path);
    }
    let reader = shell.fs.open(&status.path).await?;
    Ok((reader.len(), reader))
}

/// Shows at most so many bytes; returns how many.
async fn copy(reader: &mut FileReader, most: u64, out: &mut Stdout) -> Result<u64> {
    let mut buffer = vec![0; STEP_LEN.min(usize::try_from(most).unwrap_or(STEP_LEN)).max(1)];
    let mut shown = 0;
    while shown < most {
        let room = buffer.len().min(usize::try_from(most - shown).unwrap_or(usize::MAX));
        let len = reader.read(&mut buffer[..room]).await?;
        if len == 0 {
            break;
        }
        out.write_all(&buffer[..len]).await?;
        shown += len as u64;
    }
    out.flush().await?;
    Ok(shown)
}

/// `cairn fs text`.
#[derive(Debug, clap::Args)]
pub struct Text {
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// How the bytes of a file are packed.
#[derive(Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Deflate,
    /// Hadoop has a reader for it, and Cairn none.
    Foreign(&'static str),
}

/// By its first bytes, else by its name.
///
/// Source: Hadoop 3.5.0 `Display.Text#getInputStream`.
fn packing(name: &str, first: &[u8]) -> Packing {
    match first {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [b'S', b'E', b'Q', ..] => Packing::Foreign("a SequenceFile"),
        [b'O', b'b', b'j', 1, ..] => Packing::Foreign("an Avro file"),
        [b'B', b'Z', b'h', ..] => Packing::Foreign("packed with bzip2"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Foreign("packed with Zstandard"),
        _ if name.ends_with(".deflate") => Packing::Deflate,
        _ if name.ends_with(".snappy") => Packing::Foreign("packed with Snappy"),
        _ if name.ends_with(".lz4") => Packing::Foreign("packed with LZ4"),
        _ => Packing::None,
    }
}

impl Text {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let mut out = tokio::io::stdout();
        for status in shell.find_all(&self.paths).await {
            let shown = text(shell, &status, &mut out).await;
            unless_unread(shell, shown)?;
        }
        Ok(out.flush().await?)
    }
}

async fn text(shell: &Shell, status: &FileStatus, out: &mut Stdout) -> Result<()> {
    let (_, reader) = open(shell, status).await?;
    let mut first = [0; 4];
    let len = reader.read_at(0, &mut first).await?;
    let packing = packing(status.name(), &first[..len]);
    let path = &status.path;
    match packing {
        Packing::None => return cat(&shell.fs, status, out).await,
        Packing::Foreign(what) => {
            bail!("{path}: is {what}, which cairn cannot unpack; get it, or use hdfs dfs -text")
        }
        Packing::Gzip | Packing::Deflate => {}
    }
    // A decoder asks for bytes and waits for them; so it has a thread of its own.
    let source = Waiting { reader, runtime: Handle::current() };
    let unpacked = tokio::task::spawn_blocking(move || {
        let mut source: Box<dyn Read> = match packing {
            Packing::Gzip => Box::new(MultiGzDecoder::new(source)),
            _ => Box::new(ZlibDecoder::new(source)),
        };
        let (mut buffer, mut out) = (vec![0; STEP_LEN], std::io::stdout().lock());
        loop {
            // What cannot be unpacked is told apart from what cannot be shown.
            let len = source.read(&mut buffer).map_err(|error| anyhow::anyhow!("{error}"))?;
            if len == 0 {
                return anyhow::Ok(out.flush()?);
            }
            out.write_all(&buffer[..len])?;
        }
    });
    match unpacked.await? {
        Err(error) if !error.is::<std::io::Error>() => {
            Err(error).with_context(|| format!("{path}: cannot be unpacked"))
        }
        done => done,
    }
}

/// A reader for a thread that waits.
struct Waiting {
    reader: FileReader,
    runtime: Handle,
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.runtime.block_on(self.reader.read(buffer));
        read.map_err(|error| std::io::Error::other(error.to_string()))
    }
}

/// `cairn fs checksum`.
#[derive(Debug, clap::Args)]
pub struct Checksum {
    /// One CRC over the bytes, equal for equal bytes however they are stored
    #[arg(long)]
    composite: bool,
    /// The length of the file's blocks, too
    #[arg(short, long)]
    verbose: bool,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
}

impl Checksum {
    pub async fn run(self, shell: &Shell) -> Result<()> {
        let mode = match self.composite {
            true => ChecksumMode::CompositeCrc,
            false => shell.fs.config().checksum_mode,
        };
        let show = async |status: &FileStatus| {
            let path = &status.path;
            let Some(sum) = shell.fs.checksum(path, mode).await? else {
                bail!("{path}: Is a directory");
            };
            let (algorithm, bytes) = (&sum.algorithm, sum.to_hex());
            let block_size = status.block_size;
            if shell.json {
                let value = json!({"path": path, "algorithm": algorithm, "bytes": bytes,
                                   "block_size": block_size});
                crate::say!("{value}");
            } else if self.verbose {
                crate::say!("{path}\t{algorithm}\t{bytes}\tBlockSize={block_size}");
            } else {
                crate::say!("{path}\t{algorithm}\t{bytes}");
            }
            Ok(())
        };
        shell.each(&self.paths, false, show).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_files_are_known_by_their_first_bytes_or_their_name() {
        for (name, first, want) in [
            ("a", &b"\x1f\x8b\x08\0"[..], Packing::Gzip),
            ("a.gz", b"pla", Packing::None),
            ("a.deflate", b"x", Packing::Deflate),
            ("a", b"SEQ\x06", Packing::Foreign("a SequenceFile")),
            ("a.bz2", b"BZh9", Packing::Foreign("packed with bzip2")),
            ("a.lz4", b"", Packing::Foreign("packed with LZ4")),
            ("a", b"", Packing::None),
        ] {
            assert_eq!(packing(name, first), want, "{name}");
        }
    }
}
