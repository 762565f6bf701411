//! Reads at random places of a file and prints the median, the 99th percentile and the longest time,
//! in seconds: `preads HOST:PORT PATH COUNT LEN`.

use cairn_client::{ClientConfig, ClientError, FileSystem};
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), ClientError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers =
        (args.get(2).and_then(|n| n.parse().ok()), args.get(3).and_then(|n| n.parse().ok()));
    let ([namenode, path, ..], (Some(count), Some(len))) = (&args[..], numbers) else {
        return Err(ClientError::Argument("usage: preads HOST:PORT PATH COUNT LEN".to_string()));
    };
    let config = ClientConfig { namenode: namenode.clone(), ..ClientConfig::default() };
    let fs = FileSystem::connect(config).await?;
    let times = reads(&fs, path, count, len).await?;
    let at = |part: usize| times.get(times.len() * part / 100).map_or(0.0, Duration::as_secs_f64);
    let longest = times.last().map_or(0.0, Duration::as_secs_f64);
    println!("{:.6} {:.6} {longest:.6}", at(50), at(99));
    Ok(())
}

/// How long each read took, in order of length.
async fn reads(
    fs: &FileSystem,
    path: &str,
    count: u64,
    len: usize,
) -> Result<Vec<Duration>, ClientError> {
    let reader = fs.open(path).await?;
    let places = reader.len().saturating_sub(len as u64).max(1);
    let mut buf = vec![0; len];
    let mut times = Vec::new();
    for i in 0..count {
        // Scattered, and the same in each run.
        let place = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % places;
        let start = Instant::now();
        reader.read_at(place, &mut buf).await?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}
