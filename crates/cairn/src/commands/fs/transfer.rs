//! Bytes between local files and the file system.

use anyhow::{Context, Result, bail};
use cairn_client::{CreateOptions, FileReader, FileSystem, FileWriter};
use indicatif::ProgressBar;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Bytes moved at a time: a few stripes of the common policies.
const STEP_LEN: usize = 8 << 20;
/// Behind the name of a file that is not yet whole.
const COPYING: &str = "._COPYING_";

/// Stores a local file.
pub async fn upload(
    fs: &FileSystem,
    local: &Path,
    path: &str,
    options: &CreateOptions,
    bar: &ProgressBar,
) -> Result<()> {
    let file = tokio::fs::File::open(local).await?.into_std().await;
    write_from(file, fs.create(path, options).await?, bar).await
}

/// Fails where a file cannot be made, or replaced, at a path.
pub async fn check_target(fs: &FileSystem, path: &str, options: &CreateOptions) -> Result<()> {
    match fs.file_info(path).await? {
        Some(status) if status.is_dir() => bail!("{path}: Is a directory"),
        Some(_) if !options.overwrite => bail!("{path}: File exists"),
        _ => Ok(()),
    }
}

/// Stores a local file under another name, and gives it its own when it is whole; what was there stays until then.
/// What `unfinished` holds afterwards, also if the future is dropped, is to be deleted.
///
/// Source: Hadoop 3.5.0 `CommandWithDestination#copyStreamToTarget`.
pub async fn store(
    fs: &FileSystem,
    file: File,
    path: &str,
    options: &CreateOptions,
    bar: &ProgressBar,
    unfinished: &mut Option<String>,
) -> Result<()> {
    write_from(file, begin(fs, path, options, unfinished).await?, bar).await?;
    finish(fs, path, options, unfinished).await
}

/// Makes a file under another name than its own.
pub async fn begin(
    fs: &FileSystem,
    path: &str,
    options: &CreateOptions,
    unfinished: &mut Option<String>,
) -> Result<FileWriter> {
    let copy = unfinished.insert(copying(path)?);
    let copying = CreateOptions { overwrite: false, ..options.clone() };
    Ok(fs.create(copy, &copying).await?)
}

/// Gives it its own, when it is whole.
pub async fn finish(
    fs: &FileSystem,
    path: &str,
    options: &CreateOptions,
    unfinished: &mut Option<String>,
) -> Result<()> {
    if let Some(copy) = unfinished.as_deref() {
        fs.rename_to(copy, path, options.overwrite).await?;
    }
    *unfinished = None;
    Ok(())
}

/// A name that no other copy to `path` has: with one for all, each would delete the other's file.
fn copying(path: &str) -> Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    Ok(format!("{path}.{:08x}{COPYING}", u32::from_le_bytes(random)))
}

/// Writes all of a local file, and ends the file.
pub async fn write_from(file: File, mut writer: FileWriter, bar: &ProgressBar) -> Result<()> {
    copy_from(file, &mut writer, bar).await?;
    Ok(writer.close().await?)
}

/// Writes all of a local file.
pub async fn copy_from(mut file: File, writer: &mut FileWriter, bar: &ProgressBar) -> Result<()> {
    let mut buffer = vec![0; STEP_LEN];
    loop {
        let read;
        // Not in place: a pipe may give nothing for long, and a signal is to be heard meanwhile.
        (file, buffer, read) = tokio::task::spawn_blocking(move || {
            let read = file.read(&mut buffer);
            (file, buffer, read)
        })
        .await?;
        let len = read?;
        if len == 0 {
            return Ok(());
        }
        writer.write(&buffer[..len]).await?;
        bar.inc(len as u64);
    }
}

/// Writes all that a reader gives.
pub async fn copy_within(
    reader: &mut FileReader,
    writer: &mut FileWriter,
    bar: &ProgressBar,
) -> Result<()> {
    let mut buffer = vec![0; STEP_LEN];
    loop {
        let len = reader.read(&mut buffer).await?;
        if len == 0 {
            return Ok(());
        }
        writer.write(&buffer[..len]).await?;
        bar.inc(len as u64);
    }
}

/// Where a fetched file goes.
pub enum Place {
    /// Under this name, which nothing has, once it is whole, unless something else has come there by then.
    New(PathBuf),
    /// Under this name, once it is whole.
    File(PathBuf),
    /// Into what has this name and is no file: a device, or a pipe.
    Device(PathBuf),
}

/// Where a file goes that is to be `local`; over one that is there only if `force`, and then behind its link.
pub fn place(local: &Path, force: bool) -> Result<Place> {
    let about = || format!("cannot write {}", local.display());
    match local.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let place = if force { Place::File } else { Place::New };
            return Ok(place(local.to_path_buf()));
        }
        Err(error) => return Err(error).with_context(about),
        Ok(_) if !force => bail!("{}: File exists", local.display()),
        Ok(_) => {}
    }
    let kind = local.metadata().with_context(about)?.file_type();
    match kind {
        _ if kind.is_dir() => bail!("{}: Is a directory", local.display()),
        _ if kind.is_file() => Ok(Place::File(local.canonicalize().with_context(about)?)),
        _ => Ok(Place::Device(local.to_path_buf())),
    }
}

/// A file that is fetched.
pub enum Source<'a> {
    /// It is to be read.
    Path(&'a FileSystem, &'a str),
    /// Its bytes are here.
    Bytes(&'a [u8]),
}

/// Fetches a file. An unfinished copy does not stay behind, also if the future is dropped.
pub async fn download(source: Source<'_>, place: &Place, bar: &ProgressBar) -> Result<()> {
    let (Place::New(local) | Place::File(local) | Place::Device(local)) = place;
    let about = || format!("cannot write {}", local.display());
    let (mut file, part) = match place {
        Place::Device(_) => {
            let device = tokio::fs::OpenOptions::new().write(true).open(local).await;
            (device.with_context(about)?, None)
        }
        Place::New(_) | Place::File(_) => {
            let mut part = tempfile::Builder::new();
            // The umask takes what others may not.
            part.prefix(".cairn-").suffix(".part").permissions(Permissions::from_mode(0o666));
            let folder = local.parent().filter(|folder| !folder.as_os_str().is_empty());
            let part = part.tempfile_in(folder.unwrap_or(Path::new("."))).with_context(about)?;
            let (file, part) = part.into_parts();
            (tokio::fs::File::from_std(file), Some(part))
        }
    };
    file.set_max_buf_size(STEP_LEN);
    match source {
        Source::Path(fs, path) => read_into(fs, path, &mut file, |len| bar.inc(len)).await?,
        Source::Bytes(bytes) => file.write_all(bytes).await.with_context(about)?,
    }
    file.flush().await.with_context(about)?;
    let Some(part) = part else { return Ok(()) };
    match place {
        Place::New(_) => part.persist_noclobber(local).with_context(about),
        _ => part.persist(local).with_context(about),
    }
}

/// Writes a whole file to `out`, and tells `step` each number of bytes.
pub async fn read_into(
    fs: &FileSystem,
    path: &str,
    out: &mut (impl AsyncWrite + Unpin),
    step: impl Fn(u64),
) -> Result<()> {
    let mut reader = fs.open(path).await?;
    let mut buffer = vec![0; STEP_LEN];
    loop {
        let len = reader.read(&mut buffer).await?;
        if len == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..len]).await?;
        step(len as u64);
    }
}
