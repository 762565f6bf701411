//! Opening a file in the background.
//!
//! Source: Hadoop 3.5.0 libhdfs, `FutureDataInputStreamBuilder`.

use crate::boundary::{Text, null};
use crate::builder::{Connection, Fs};
use crate::failure::{Failure, Result, call, status};
use crate::file::File;
use cairn_client::{Blocking, ClientError, FileReader, Kept};
use libc::c_int;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinHandle};

/// What mandatory options may be named. They are taken, and change nothing.
const STANDARD_OPTIONS: &str = "fs.option.openfile.";

/// What a program says before it opens a file. `hdfsOpenFileBuilder`.
pub struct OpenFileBuilder {
    fs: Arc<Connection>,
    path: String,
    /// A mandatory option that nobody knows.
    unknown: Option<String>,
}

/// A file being opened. `hdfsOpenFileFuture`.
pub struct OpenFileFuture {
    blocking: Blocking,
    state: Mutex<Kept<State>>,
    /// Beside the state, which one who waits for the file has locked.
    abort: AbortHandle,
}

enum State {
    Opening(JoinHandle<Result<FileReader, ClientError>>),
    Opened(Result<FileReader>),
}

impl OpenFileFuture {
    /// The file, once it is open, or after `limit`.
    fn get(&self, limit: Option<Duration>) -> Result<File> {
        let reader = self.blocking.wait(async {
            Ok(match limit {
                None => self.opened().await,
                Some(limit) => {
                    tokio::time::timeout(limit, self.opened()).await.unwrap_or_else(|_| {
                        let class = "java.util.concurrent.TimeoutException";
                        Err(Failure::exception(class, "not open yet"))
                    })
                }
            })
        })?;
        Ok(File::input(self.blocking, reader?))
    }

    /// A reader of its own for each who asks.
    async fn opened(&self) -> Result<FileReader> {
        let mut state = self.state.lock().await;
        if let State::Opening(task) = &mut **state {
            let class = "java.util.concurrent.CancellationException";
            let cancelled = |_| Failure::exception(class, "opening was cancelled");
            let opened = task.await.map_err(cancelled).and_then(|opened| Ok(opened?));
            **state = State::Opened(opened);
        }
        match &**state {
            State::Opened(Ok(reader)) => Ok(reader.another()),
            State::Opened(Err(failure)) => Err(failure.clone()),
            State::Opening(_) => Err(Failure::io("not open")),
        }
    }
}

/// A builder for a path.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileBuilderAlloc(
    fs: Option<&Fs>,
    path: Text,
) -> Option<Box<OpenFileBuilder>> {
    call(None, || {
        let fs = fs.ok_or_else(null)?.0.clone();
        let path = fs.path(&path)?;
        Ok(Some(Box::new(OpenFileBuilder { fs, path, unknown: None })))
    })
}

/// Sets an option that must be known; opening fails when it is not. Answers the builder.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileBuilderMust(
    builder: Option<&mut OpenFileBuilder>,
    key: Text,
    value: Text,
) -> Option<&mut OpenFileBuilder> {
    call(None, || {
        let builder = builder.ok_or_else(null)?;
        value.require()?;
        let key = key.require()?;
        if !key.starts_with(STANDARD_OPTIONS) {
            builder.unknown = Some(key.to_string());
        }
        Ok(Some(builder))
    })
}

/// Sets an option that may be unknown. Answers the builder.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileBuilderOpt(
    builder: Option<&mut OpenFileBuilder>,
    key: Text,
    value: Text,
) -> Option<&mut OpenFileBuilder> {
    call(None, || {
        key.require().and(value.require())?;
        builder.map(Some).ok_or_else(null)
    })
}

/// Begins to open the file, and gives the builder back.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileBuilderBuild(
    builder: Option<Box<OpenFileBuilder>>,
) -> Option<Box<OpenFileFuture>> {
    call(None, || {
        let OpenFileBuilder { fs, path, unknown } = *builder.ok_or_else(null)?;
        if let Some(key) = unknown {
            return Err(Failure::argument(format!("Unknown mandatory key in {path} \"{key}\"")));
        }
        let blocking = fs.blocking;
        let _on_runtime = blocking.enter()?;
        let task = tokio::spawn(async move { fs.client.open(&path).await });
        let abort = task.abort_handle();
        let state = Mutex::new(blocking.keep(State::Opening(task)));
        Ok(Some(Box::new(OpenFileFuture { blocking, state, abort })))
    })
}

/// Gives a builder back that opens nothing.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileBuilderFree(builder: Option<Box<OpenFileBuilder>>) {
    drop(builder);
}

/// Waits for the file.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileFutureGet(future: Option<&OpenFileFuture>) -> Option<Box<File>> {
    call(None, || Ok(Some(Box::new(future.ok_or_else(null)?.get(None)?))))
}

/// Waits for the file, no longer than so many units: nano-, micro-, milliseconds, seconds, minutes,
/// hours, days.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileFutureGetWithTimeout(
    future: Option<&OpenFileFuture>,
    timeout: i64,
    unit: c_int,
) -> Option<Box<File>> {
    call(None, || {
        let count = u64::try_from(timeout).unwrap_or(0);
        let seconds = |each: u64| Duration::from_secs(count.saturating_mul(each));
        let limit = match unit {
            0 => Duration::from_nanos(count),
            1 => Duration::from_micros(count),
            2 => Duration::from_millis(count),
            3 => seconds(1),
            4 => seconds(60),
            5 => seconds(3600),
            6 => seconds(86_400),
            _ => return Err(Failure::argument(format!("{unit} is no unit of time"))),
        };
        Ok(Some(Box::new(future.ok_or_else(null)?.get(Some(limit))?)))
    })
}

/// Gives up opening. -1 when that is over.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileFutureCancel(
    future: Option<&OpenFileFuture>,
    _may_interrupt: c_int,
) -> c_int {
    status(|| {
        let future = future.ok_or_else(null)?;
        if future.abort.is_finished() {
            return Err(Failure::io("the file is open, or cannot be opened"));
        }
        future.abort.abort();
        Ok(())
    })
}

/// Gives a future back.
#[unsafe(no_mangle)]
extern "C" fn hdfsOpenFileFutureFree(future: Option<Box<OpenFileFuture>>) {
    drop(future);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_can_be_cancelled_while_another_waits_for_it() {
        let blocking = Blocking::of_process().unwrap();
        let _on_runtime = blocking.enter().unwrap();
        let task = tokio::spawn(std::future::pending());
        let abort = task.abort_handle();
        let state = Mutex::new(blocking.keep(State::Opening(task)));
        let future = OpenFileFuture { blocking, state, abort };
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| future.get(None).map(drop));
            let class = |failure: Failure| format!("{failure:?}");
            let soon = future.get(Some(Duration::from_millis(50))).map(drop);
            assert!(class(soon.unwrap_err()).contains("TimeoutException"));
            assert_eq!(hdfsOpenFileFutureCancel(Some(&future), 0), 0);
            let cancelled = waiting.join().unwrap();
            assert!(class(cancelled.unwrap_err()).contains("CancellationException"));
        });
        assert_eq!(hdfsOpenFileFutureCancel(Some(&future), 0), -1);
    }
}
