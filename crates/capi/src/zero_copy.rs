//! Reading without copying: the caller gets the client's own buffers.
//!
//! libhdfs maps files of the same machine, and with a pool of buffers it copies where it cannot. Here a
//! read always succeeds without a copy, so pools are taken and not used, and checksums are always checked.

use crate::boundary::{Text, null};
use crate::failure::{Failure, Result, call, status};
use crate::file::{File, opened};
use bytes::Bytes;
use errno::{Errno, set_errno};
use libc::{c_int, c_void};
use std::ptr;

/// The one pool of buffers that Hadoop has.
const POOL: &str = "org/apache/hadoop/io/ElasticByteBufferPool";

/// How to read. `hadoopRzOptions`. All wishes are taken, and none changes anything.
pub struct Options {
    /// What has no size need not have an address of its own.
    _place: u8,
}

/// What was read. `hadoopRzBuffer`.
pub struct Buffer {
    /// `None` at the end of the file.
    bytes: Option<Bytes>,
}

/// New options.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzOptionsAlloc() -> Option<Box<Options>> {
    Some(Box::new(Options { _place: 0 }))
}

/// Takes the wish to skip checksums.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzOptionsSetSkipChecksum(options: Option<&mut Options>, _skip: c_int) -> c_int {
    status(|| options.map(|_| ()).ok_or_else(null))
}

/// Takes a pool by the name of its class, or none.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzOptionsSetByteBufferPool(
    options: Option<&mut Options>,
    class: Text,
) -> c_int {
    status(|| {
        options.ok_or_else(null)?;
        match class.get()? {
            None => Ok(()),
            Some(name) if name.replace('.', "/") == POOL => Ok(()),
            Some(name) => Err(Failure::argument(format!("there is no pool {name}"))),
        }
    })
}

/// Gives options back.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzOptionsFree(options: Option<Box<Options>>) {
    drop(options);
}

/// Reads the next bytes, at most `max`, for [`hadoopRzBufferFree`].
#[unsafe(no_mangle)]
extern "C" fn hadoopReadZero(
    file: Option<&File>,
    options: Option<&Options>,
    max: i32,
) -> Option<Box<Buffer>> {
    call(None, || {
        let file = opened(file)?;
        let input = file.reader(libc::EINVAL)?;
        options.ok_or_else(null)?;
        let negative = |_| Failure::argument("can't read a negative number of bytes.");
        let bytes = match usize::try_from(max).map_err(negative)? {
            0 => Some(Bytes::new()),
            max => file.blocking.wait(input.sequential().next_chunk_up_to(max))?,
        };
        input.count(bytes.as_ref().map_or(0, Bytes::len));
        set_errno(Errno(0));
        Ok(Some(Box::new(Buffer { bytes })))
    })
}

fn bytes(buffer: Option<&Buffer>) -> Result<Option<&Bytes>> {
    Ok(buffer.ok_or_else(null)?.bytes.as_ref())
}

/// Bytes of a buffer.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzBufferLength(buffer: Option<&Buffer>) -> i32 {
    call(-1, || {
        let len = bytes(buffer)?.map_or(0, Bytes::len);
        Ok(i32::try_from(len).unwrap_or(i32::MAX))
    })
}

/// Where the bytes are; null at the end of the file.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzBufferGet(buffer: Option<&Buffer>) -> *const c_void {
    let null = ptr::null();
    call(null, || Ok(bytes(buffer)?.map_or(null, |bytes| bytes.as_ptr().cast::<c_void>())))
}

/// Gives a buffer back; the file may be closed by then.
#[unsafe(no_mangle)]
extern "C" fn hadoopRzBufferFree(_file: *const c_void, buffer: Option<Box<Buffer>>) {
    drop(buffer);
}
