//! Open files: reading, positional reading, writing.

use crate::attributes::offset;
use crate::boundary::{Text, buffer, buffer_mut};
use crate::builder::{Connection, Fs, connection};
use crate::failure::{Failure, Result, call, status};
use cairn_client::{Blocking, CreateOptions, FileReader, FileWriter, Kept};
use errno::{Errno, set_errno};
use libc::{c_int, c_short, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open file. `hdfsFile` points to one. It needs no file system handle: those of the calls are not
/// looked at.
pub struct File {
    /// What the client works on.
    pub blocking: Blocking,
    stream: Kept<Stream>,
}

enum Stream {
    Input(Box<Input>),
    Output(Mutex<FileWriter>),
}

/// A file open for reading.
pub struct Input {
    /// For positional reads, of which several may run.
    positional: FileReader,
    sequential: Mutex<FileReader>,
    /// Bytes read.
    read: AtomicU64,
}

impl Input {
    /// The sequential reader.
    pub fn sequential(&self) -> MutexGuard<'_, FileReader> {
        self.sequential.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes that were read.
    pub fn count(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes read since the file was opened, or since they were counted anew.
    pub fn total(&self) -> &AtomicU64 {
        &self.read
    }
}

impl File {
    /// A file to read.
    pub fn input(blocking: Blocking, reader: FileReader) -> File {
        let sequential = Mutex::new(reader.another());
        let input = Input { positional: reader, sequential, read: AtomicU64::new(0) };
        File { blocking, stream: blocking.keep(Stream::Input(Box::new(input))) }
    }

    /// The reader of a handle; `wrong` is the error when it is open for writing.
    pub fn reader(&self, wrong: i32) -> Result<&Input> {
        match &*self.stream {
            Stream::Input(input) => Ok(input),
            Stream::Output(_) => {
                Err(Failure::argument("Cannot read from a non-InputStream object!")
                    .with_errno(wrong))
            }
        }
    }

    fn writer(&self, wrong: i32) -> Result<MutexGuard<'_, FileWriter>> {
        match &*self.stream {
            Stream::Output(writer) => Ok(writer.lock().unwrap_or_else(PoisonError::into_inner)),
            Stream::Input(_) => {
                Err(Failure::argument("Cannot write into a non-OutputStream object!")
                    .with_errno(wrong))
            }
        }
    }
}

/// A file handle that must not be null.
pub fn opened(file: Option<&File>) -> Result<&File> {
    file.ok_or_else(|| Failure::bad_handle("no file"))
}

/// How to open a file.
pub struct Request {
    /// Absolute.
    pub path: String,
    /// Of `open(2)`.
    pub flags: c_int,
    /// Copies; the configured number when 0.
    pub replication: i16,
    /// Bytes; the configured number when 0.
    pub block_size: i64,
}

impl Request {
    /// Whether the flags ask for a file to read.
    pub fn is_for_reading(&self) -> Result<bool> {
        match self.flags & libc::O_ACCMODE {
            libc::O_RDONLY => Ok(true),
            libc::O_WRONLY => Ok(false),
            libc::O_RDWR => Err(Failure::unsupported("cannot open an hdfs file in O_RDWR mode")),
            mode => Err(Failure::argument(format!("cannot open an hdfs file in mode {mode:#x}"))),
        }
    }

    /// Opens the file: to read, to write behind its end, or anew.
    pub fn open(self, fs: &Connection) -> Result<File> {
        if self.is_for_reading()? {
            let reader = fs.wait(fs.client.open(&self.path))?;
            return Ok(File::input(fs.blocking, reader));
        }
        let writer = if self.flags & libc::O_APPEND != 0 {
            fs.wait(fs.client.append(&self.path))?
        } else {
            let wrong = |_| Failure::argument("a negative replication or block size");
            let replication = u16::try_from(self.replication).map_err(wrong)?;
            let block_size = u64::try_from(self.block_size).map_err(wrong)?;
            let options = CreateOptions {
                overwrite: true,
                create_parents: true,
                replication: Some(replication).filter(|copies| *copies > 0),
                block_size: Some(block_size).filter(|bytes| *bytes > 0),
                ..CreateOptions::default()
            };
            fs.wait(fs.client.create(&self.path, &options))?
        };
        let stream = fs.blocking.keep(Stream::Output(Mutex::new(writer)));
        Ok(File { blocking: fs.blocking, stream })
    }
}

/// Opens a file: `O_RDONLY`, `O_WRONLY` (made anew, whatever was there), `O_WRONLY | O_APPEND`.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFile(
    fs: Option<&Fs>,
    path: Text,
    flags: c_int,
    _buffer_size: c_int,
    replication: c_short,
    block_size: i32,
) -> Option<Box<File>> {
    call(None, || {
        let fs = connection(fs)?;
        let path = fs.path(&path)?;
        let request = Request { path, flags, replication, block_size: i64::from(block_size) };
        Ok(Some(Box::new(request.open(fs)?)))
    })
}

/// Closes a file, and gives the handle back also when that fails.
#[unsafe(no_mangle)]
extern "C" fn hdfsCloseFile(_fs: *const c_void, file: Option<Box<File>>) -> c_int {
    status(|| {
        let File { blocking, stream } = *file.ok_or_else(|| Failure::bad_handle("no file"))?;
        let _on_runtime = blocking.enter()?;
        match stream.into_inner() {
            Stream::Input(_) => Ok(()),
            Stream::Output(writer) => {
                let writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
                Ok(blocking.wait(writer.close())?)
            }
        }
    })
}

/// 1 when the file is open for reading.
#[unsafe(no_mangle)]
extern "C" fn hdfsFileIsOpenForRead(file: Option<&File>) -> c_int {
    c_int::from(file.is_some_and(|file| matches!(*file.stream, Stream::Input(_))))
}

/// 1 when the file is open for writing.
#[unsafe(no_mangle)]
extern "C" fn hdfsFileIsOpenForWrite(file: Option<&File>) -> c_int {
    c_int::from(file.is_some_and(|file| matches!(*file.stream, Stream::Output(_))))
}

/// Reads the next bytes: as many as asked for, fewer only at the end of the file, where it answers 0.
#[unsafe(no_mangle)]
extern "C" fn hdfsRead(
    _fs: *const c_void,
    file: Option<&File>,
    start: *mut c_void,
    len: i32,
) -> i32 {
    call(-1, || {
        let file = opened(file)?;
        let input = file.reader(libc::EINVAL)?;
        let Some(buf) = buffer_mut(start, len)? else { return Ok(0) };
        let mut reader = input.sequential();
        let mut filled = 0;
        let done = file.blocking.wait(async {
            while filled < buf.len() {
                match reader.read(&mut buf[filled..]).await? {
                    0 => break,
                    count => filled += count,
                }
            }
            Ok(())
        });
        input.count(filled);
        // What was read first is told first: the next call meets the error again.
        if filled == 0 { done.map(|()| 0).map_err(Failure::from) } else { Ok(filled as i32) }
    })
}

fn read_at(file: Option<&File>, position: i64, start: *mut c_void, len: i32) -> Result<usize> {
    let file = opened(file)?;
    let input = file.reader(libc::EINVAL)?;
    let Some(buf) = buffer_mut(start, len)? else { return Ok(0) };
    let negative = |_| Failure::end_of_file("position is negative");
    let position = u64::try_from(position).map_err(negative)?;
    let count = file.blocking.wait(input.positional.read_at(position, buf))?;
    input.count(count);
    Ok(count)
}

/// Reads bytes at a position, and leaves the place of the next sequential read alone. Several threads may
/// do that with one handle.
#[unsafe(no_mangle)]
extern "C" fn hdfsPread(
    _fs: *const c_void,
    file: Option<&File>,
    position: i64,
    start: *mut c_void,
    len: i32,
) -> i32 {
    call(-1, || read_at(file, position, start, len).map(|count| count as i32))
}

/// As [`hdfsPread`], and fewer bytes are an error. 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn hdfsPreadFully(
    _fs: *const c_void,
    file: Option<&File>,
    position: i64,
    start: *mut c_void,
    len: i32,
) -> c_int {
    status(|| match read_at(file, position, start, len)? {
        count if count as i64 == i64::from(len) => Ok(()),
        _ => Err(Failure::end_of_file("End of file reached before reading fully.")),
    })
}

/// Writes all of a buffer; answers its length.
#[unsafe(no_mangle)]
extern "C" fn hdfsWrite(
    _fs: *const c_void,
    file: Option<&File>,
    start: *const c_void,
    len: i32,
) -> i32 {
    call(-1, || {
        let file = opened(file)?;
        let mut writer = file.writer(libc::EINVAL)?;
        let Some(data) = buffer(start, len)? else { return Ok(0) };
        file.blocking.wait(writer.write(data))?;
        Ok(len)
    })
}

/// Moves the place of the next sequential read, at most to the end of the file.
#[unsafe(no_mangle)]
extern "C" fn hdfsSeek(_fs: *const c_void, file: Option<&File>, position: i64) -> c_int {
    status(|| {
        let file = opened(file)?;
        let mut reader = file.reader(libc::EBADF)?.sequential();
        let negative = |_| Failure::end_of_file("Cannot seek to negative offset");
        let position = u64::try_from(position).map_err(negative)?;
        if position > reader.len() {
            return Err(Failure::end_of_file("Cannot seek after EOF"));
        }
        let _on_runtime = file.blocking.enter()?;
        reader.seek(position);
        Ok(())
    })
}

/// The place of the next sequential read, or how many bytes the file being written has.
#[unsafe(no_mangle)]
extern "C" fn hdfsTell(_fs: *const c_void, file: Option<&File>) -> i64 {
    call(-1, || {
        let position = match &*opened(file)?.stream {
            Stream::Input(input) => input.sequential().position(),
            Stream::Output(writer) => {
                writer.lock().unwrap_or_else(PoisonError::into_inner).position()
            }
        };
        Ok(offset(position))
    })
}

/// Bytes from the place of the next sequential read to the end.
#[unsafe(no_mangle)]
extern "C" fn hdfsAvailable(_fs: *const c_void, file: Option<&File>) -> c_int {
    call(-1, || {
        let reader = opened(file)?.reader(libc::EBADF)?.sequential();
        let left = reader.len().saturating_sub(reader.position());
        Ok(c_int::try_from(left).unwrap_or(c_int::MAX))
    })
}

/// Sends nothing: what was written is in buffers that are sent by themselves.
#[unsafe(no_mangle)]
extern "C" fn hdfsFlush(_fs: *const c_void, file: Option<&File>) -> c_int {
    status(|| opened(file)?.writer(libc::EBADF).map(drop))
}

/// Returns when new readers see what was written. `ENOTSUP` for erasure coded files.
#[unsafe(no_mangle)]
extern "C" fn hdfsHFlush(_fs: *const c_void, file: Option<&File>) -> c_int {
    status(|| {
        let file = opened(file)?;
        let mut writer = file.writer(libc::EBADF)?;
        Ok(file.blocking.wait(writer.hflush())?)
    })
}

/// As [`hdfsHFlush`], and the bytes are on stable storage.
#[unsafe(no_mangle)]
extern "C" fn hdfsHSync(_fs: *const c_void, file: Option<&File>) -> c_int {
    status(|| {
        let file = opened(file)?;
        let mut writer = file.writer(libc::EBADF)?;
        Ok(file.blocking.wait(writer.hsync())?)
    })
}

/// Gives up what was read ahead. 0, or the error's number, which `errno` has too.
#[unsafe(no_mangle)]
extern "C" fn hdfsUnbufferFile(file: Option<&File>) -> c_int {
    let mut errno = 0;
    call((), || {
        let unbuffered = opened(file).and_then(|file| {
            let _on_runtime = file.blocking.enter()?;
            file.reader(libc::ENOTSUP)?.sequential().unbuffer();
            Ok(())
        });
        unbuffered.inspect_err(|failure| errno = failure.errno)
    });
    if errno == 0 {
        set_errno(Errno(0));
    }
    errno
}
