//! Bytes between local files and the file system.

use anyhow::{Context, Result};
use cairn_client::{CreateOptions, FileSystem};
use indicatif::ProgressBar;
use std::io::Read;
use std::path::Path;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Bytes moved at a time: a few stripes of the common policies.
const STEP_LEN: usize = 8 << 20;

/// Stores a local file; returns its length.
pub async fn upload(
    fs: &FileSystem,
    local: &Path,
    path: &str,
    options: &CreateOptions,
    bar: &ProgressBar,
) -> Result<u64> {
    let mut file = std::fs::File::open(local)?;
    let mut writer = fs.create(path, options).await?;
    let mut buffer = vec![0; STEP_LEN];
    let mut total = 0;
    loop {
        let len = tokio::task::block_in_place(|| file.read(&mut buffer))?;
        if len == 0 {
            break;
        }
        writer.write(&buffer[..len]).await?;
        total += len as u64;
        bar.inc(len as u64);
    }
    writer.close().await?;
    Ok(total)
}

/// Fetches a file; an unfinished copy does not stay behind.
pub async fn download(fs: &FileSystem, path: &str, local: &Path, bar: &ProgressBar) -> Result<u64> {
    let mut part = local.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let about = || format!("cannot write {}", part.display());
    let mut file = tokio::fs::File::create(part).await.with_context(about)?;
    file.set_max_buf_size(STEP_LEN);
    let fetched = read_into(fs, path, &mut file, |len| bar.inc(len)).await;
    let finished = match fetched {
        Ok(total) => file.flush().await.map(|()| total).with_context(about),
        Err(error) => Err(error),
    };
    match finished {
        Ok(total) => {
            tokio::fs::rename(part, local).await?;
            Ok(total)
        }
        Err(error) => {
            // The error that stopped the copy is the one to tell.
            let _ = tokio::fs::remove_file(part).await;
            Err(error)
        }
    }
}

/// Writes a whole file to `out`, and tells `step` each number of bytes.
pub async fn read_into(
    fs: &FileSystem,
    path: &str,
    out: &mut (impl AsyncWrite + Unpin),
    step: impl Fn(u64),
) -> Result<u64> {
    let mut reader = fs.open(path).await?;
    let mut buffer = vec![0; STEP_LEN];
    let mut total = 0;
    loop {
        let len = reader.read(&mut buffer).await?;
        if len == 0 {
            return Ok(total);
        }
        out.write_all(&buffer[..len]).await?;
        total += len as u64;
        step(len as u64);
    }
}
