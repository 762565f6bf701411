//! Cairn's client for the benchmarks: one command a line on standard input, one line back, numbers in
//! seconds or an error. The same commands as `BenchClient` of `interop/hadoop` has.
//!
//! ```text
//! preads PATH N LEN AT_ONCE     reads at N random places: median, 99th percentile, longest, all together
//! seeks PATH N LEN SKIP         N times a seek and a read, SKIP bytes behind the last one, or at random places where
//!                               SKIP is "random": median, 99th percentile, longest, all together
//! write FOLDER N LEN AT_ONCE    writes N files of LEN bytes: all together
//! read FOLDER N AT_ONCE         reads them: all together
//! limits FOLDER                 bytes a second of a copy in memory, of loopback TCP, of the page cache, of the disk;
//!                               seconds until 4 KiB, and 64 KiB, are there that were asked for over loopback TCP
//! ```
//!
//! Run as `benchclient HOST:PORT USER`, with a third word that is DataNodes' `dfs.domain.socket.path` to read replicas on
//! this machine through descriptors. Only this one has `seeks`.

use cairn_client::{ClientConfig, ClientError, CreateOptions, FileSystem};
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

type Answer = Result<Vec<f64>, Box<dyn std::error::Error + Send + Sync>>;

/// Bytes given to a writer at once.
const PIECE: usize = 1 << 20;
/// Bytes moved to measure a limit.
const LIMIT_LEN: usize = 1 << 30;
/// Round trips of which the median is taken.
const ROUND_TRIPS: usize = 2001;

#[tokio::main]
async fn main() -> Result<(), ClientError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [namenode, user, ..] = &args[..] else {
        return Err(ClientError::Argument("usage: benchclient HOST:PORT USER".to_string()));
    };
    let (namenode, user) = (namenode.clone(), user.clone());
    let domain_socket = args.get(2).cloned();
    let short_circuit = domain_socket.is_some();
    let config = ClientConfig::default();
    let fs =
        FileSystem::new(ClientConfig { namenode, user, domain_socket, short_circuit, ..config })?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| ClientError::Argument(error.to_string()))?;
        match command(&fs, &line).await {
            Ok(numbers) => {
                let words: Vec<String> = numbers.iter().map(|n| format!("{n:.9}")).collect();
                println!("{}", words.join(" "));
            }
            Err(error) => println!("error {}", error.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

async fn command(fs: &FileSystem, line: &str) -> Answer {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["preads", path, count, len, at_once] => {
            preads(fs, path, count.parse()?, len.parse()?, at_once.parse()?).await
        }
        ["seeks", path, count, len, skip] => {
            seeks(fs, path, count.parse()?, len.parse()?, skip.parse().ok()).await
        }
        ["write", folder, count, len, at_once] => {
            let len: u64 = len.parse()?;
            let each = move |fs: FileSystem, path: String| write(fs, path, len);
            all(fs, folder, count.parse()?, at_once.parse()?, each).await
        }
        ["read", folder, count, at_once] => {
            all(fs, folder, count.parse()?, at_once.parse()?, read).await
        }
        ["limits", folder] => {
            let folder = folder.to_string();
            tokio::task::spawn_blocking(move || limits(&folder)).await?
        }
        _ => Err(format!("unknown command {line}").into()),
    }
}

/// Has `at_once` tasks do `one` with the files `FOLDER/0` and so on.
async fn all<F>(
    fs: &FileSystem,
    folder: &str,
    count: u64,
    at_once: u64,
    one: impl Fn(FileSystem, String) -> F + Clone + Send + 'static,
) -> Answer
where
    F: Future<Output = Result<(), ClientError>> + Send,
{
    let (next, begin) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let mut tasks: JoinSet<Result<(), ClientError>> = JoinSet::new();
    for _ in 0..at_once {
        let (fs, folder, next, one) = (fs.clone(), folder.to_string(), next.clone(), one.clone());
        tasks.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return Ok(());
                }
                one(fs.clone(), format!("{folder}/{index}")).await?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(vec![begin.elapsed().as_secs_f64()])
}

async fn write(fs: FileSystem, path: String, len: u64) -> Result<(), ClientError> {
    let options =
        CreateOptions { overwrite: true, create_parents: true, ..CreateOptions::default() };
    let mut writer = fs.create(&path, &options).await?;
    let piece: Vec<u8> = (0..PIECE.min(len as usize)).map(|i| (i * 31 + i / 1000) as u8).collect();
    let mut left = len as usize;
    while left > 0 {
        let count = left.min(piece.len());
        writer.write(&piece[..count]).await?;
        left -= count;
    }
    writer.close().await
}

async fn read(fs: FileSystem, path: String) -> Result<(), ClientError> {
    let mut reader = fs.open(&path).await?;
    let mut got = 0;
    while let Some(chunk) = reader.next_chunk().await? {
        got += chunk.len() as u64;
    }
    match got == reader.len() {
        true => Ok(()),
        false => Err(ClientError::Protocol(format!("{path}: {got} bytes of {}", reader.len()))),
    }
}

async fn preads(fs: &FileSystem, path: &str, count: u64, len: usize, at_once: u64) -> Answer {
    let reader = Arc::new(fs.open(path).await?);
    let places = reader.len().saturating_sub(len as u64).max(1);
    let begin = Instant::now();
    let mut tasks: JoinSet<Result<Vec<Duration>, ClientError>> = JoinSet::new();
    for task in 0..at_once {
        let reader = reader.clone();
        tasks.spawn(async move {
            let (mut buf, mut times) = (vec![0; len], Vec::new());
            for i in (task..count).step_by(at_once as usize) {
                // Scattered, and the same in each run.
                let place = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % places;
                let start = Instant::now();
                reader.read_at(place, &mut buf).await?;
                times.push(start.elapsed());
            }
            Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    Ok(summary(times, begin.elapsed()))
}

async fn seeks(fs: &FileSystem, path: &str, count: u64, len: usize, skip: Option<u64>) -> Answer {
    let mut reader = fs.open(path).await?;
    let places = reader.len().saturating_sub(len as u64).max(1);
    let (mut buf, mut times) = (vec![0; len], Vec::new());
    let begin = Instant::now();
    for i in 0..count {
        let next = i.wrapping_mul(skip.map_or(0x9E37_79B9_7F4A_7C15, |skip| skip + len as u64));
        let start = Instant::now();
        reader.seek(next % places);
        let mut filled = 0;
        while filled < len {
            match reader.read(&mut buf[filled..]).await? {
                0 => return Err(format!("{path} ends").into()),
                got => filled += got,
            }
        }
        times.push(start.elapsed());
    }
    Ok(summary(times, begin.elapsed()))
}

/// Median, 99th percentile and longest, in order, and all together.
fn summary(mut times: Vec<Duration>, together: Duration) -> Vec<f64> {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    let longest = times.last().copied().unwrap_or_default();
    [at(50), at(99), longest, together].iter().map(Duration::as_secs_f64).collect()
}

/// Seconds between asking for `len` bytes over loopback TCP and having them: the median.
fn round_trip(len: usize) -> std::io::Result<f64> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut near = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut asked, answer) = ([0; 1], vec![4; len]);
        while far.read(&mut asked)? > 0 {
            far.write_all(&answer)?;
        }
        Ok(())
    });
    let (mut answer, mut times) = (vec![0; len], Vec::new());
    for _ in 0..ROUND_TRIPS {
        let begin = Instant::now();
        near.write_all(&[1])?;
        near.read_exact(&mut answer)?;
        times.push(begin.elapsed());
    }
    drop(near);
    server.join().map_err(|_| std::io::Error::other("the server failed"))??;
    times.sort_unstable();
    Ok(times[ROUND_TRIPS / 2].as_secs_f64())
}

/// What nothing here can be faster than: in bytes a second, and in seconds.
fn limits(folder: &str) -> Answer {
    let rate = |begin: Instant| LIMIT_LEN as f64 / begin.elapsed().as_secs_f64();
    let from = vec![1_u8; LIMIT_LEN / 4];
    let mut to = vec![2_u8; LIMIT_LEN / 4];
    let begin = Instant::now();
    for _ in 0..4 {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
    }
    let copy = rate(begin);

    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut sender = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    let begin = Instant::now();
    let sent = std::thread::spawn(move || -> std::io::Result<()> {
        let piece = vec![3; PIECE];
        (0..LIMIT_LEN / PIECE).try_for_each(|_| sender.write_all(&piece))
    });
    let mut piece = vec![0; PIECE];
    while receiver.read(&mut piece)? > 0 {}
    sent.join().map_err(|_| "the sender failed")??;
    let loopback = rate(begin);

    let path = std::path::Path::new(folder).join("limit");
    let mut file = std::fs::File::create(&path)?;
    let begin = Instant::now();
    for _ in 0..LIMIT_LEN / PIECE {
        file.write_all(&piece)?;
    }
    let pages = rate(begin);
    file.sync_data()?;
    let disk = rate(begin);
    std::fs::remove_file(&path)?;
    Ok(vec![copy, loopback, pages, disk, round_trip(4 << 10)?, round_trip(64 << 10)?])
}
