//! Opening a file step by step.

use crate::boundary::{Text, null};
use crate::builder::{Connection, Fs};
use crate::failure::{Failure, Result, call, status};
use crate::file::{File, Request};
use libc::c_int;
use std::sync::Arc;

/// What a program says before it opens a file. `hdfsStreamBuilder`.
pub struct StreamBuilder {
    fs: Arc<Connection>,
    request: Request,
}

/// A builder of a file to write.
fn to_write(builder: Option<&mut StreamBuilder>) -> Result<&mut Request> {
    let request = &mut builder.ok_or_else(null)?.request;
    if request.is_for_reading()? {
        return Err(Failure::argument("only files that are written have that"));
    }
    Ok(request)
}

/// A builder for a path and the flags of `hdfsOpenFile`.
#[unsafe(no_mangle)]
extern "C" fn hdfsStreamBuilderAlloc(
    fs: Option<&Fs>,
    path: Text,
    flags: c_int,
) -> Option<Box<StreamBuilder>> {
    call(None, || {
        let fs = fs.ok_or_else(null)?.0.clone();
        let request = Request { path: fs.path(&path)?, flags, replication: 0, block_size: 0 };
        request.is_for_reading()?;
        Ok(Some(Box::new(StreamBuilder { fs, request })))
    })
}

/// Gives a builder back that opens nothing.
#[unsafe(no_mangle)]
extern "C" fn hdfsStreamBuilderFree(builder: Option<Box<StreamBuilder>>) {
    drop(builder);
}

/// Takes a size of buffers, which have one of their own here.
#[unsafe(no_mangle)]
extern "C" fn hdfsStreamBuilderSetBufferSize(
    builder: Option<&mut StreamBuilder>,
    _size: i32,
) -> c_int {
    status(|| builder.map(|_| ()).ok_or_else(null))
}

/// Sets how many copies the new file has.
#[unsafe(no_mangle)]
extern "C" fn hdfsStreamBuilderSetReplication(
    builder: Option<&mut StreamBuilder>,
    replication: i16,
) -> c_int {
    status(|| {
        to_write(builder)?.replication = replication;
        Ok(())
    })
}

/// Sets the bytes of a block of the new file.
#[unsafe(no_mangle)]
extern "C" fn hdfsStreamBuilderSetDefaultBlockSize(
    builder: Option<&mut StreamBuilder>,
    block_size: i64,
) -> c_int {
    status(|| {
        to_write(builder)?.block_size = block_size;
        Ok(())
    })
}

/// Opens the file, and gives the builder back.
#[unsafe(no_mangle)]
extern "C" fn hdfsStreamBuilderBuild(builder: Option<Box<StreamBuilder>>) -> Option<Box<File>> {
    call(None, || {
        let StreamBuilder { fs, request } = *builder.ok_or_else(null)?;
        Ok(Some(Box::new(request.open(&fs)?)))
    })
}
