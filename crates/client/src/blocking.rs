//! For programs that have no runtime, such as those of other languages: one runtime for the process,
//! and calls that wait.

use crate::error::{ClientError, Result};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, EnterGuard, Runtime};

/// The runtime of a process, by the process's id: threads do not survive a `fork`, so a child makes
/// its own. None is ever dropped.
static CURRENT: Mutex<Option<Blocking>> = Mutex::new(None);

/// A handle to the one runtime of this process, on which the client works while its caller waits.
///
/// What was opened with it belongs to the process that opened it: in a child of `fork` calls fail
/// instead of waiting for ever.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    process: u32,
    runtime: &'static Runtime,
}

impl Blocking {
    /// The runtime of this process, started if there is none.
    pub fn of_process() -> Result<Blocking> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if let Some(blocking) = *current
            && blocking.process == process
        {
            return Ok(blocking);
        }
        let runtime = Builder::new_multi_thread().thread_name("cairn-client").enable_all().build();
        let no_threads = |error| ClientError::Argument(format!("cannot start threads: {error}"));
        let runtime = Box::leak(Box::new(runtime.map_err(no_threads)?));
        Ok(*current.insert(Blocking { process, runtime }))
    }

    /// Waits for a call. Must not be used on a thread that a tokio runtime drives.
    pub fn wait<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        if self.process != std::process::id() {
            let what = "opened before a fork: connect again in the child".to_string();
            return Err(ClientError::Argument(what));
        }
        self.runtime.block_on(call)
    }

    /// Lets this thread start and drop what works on the runtime, until the guard goes.
    pub fn enter(&self) -> EnterGuard<'static> {
        self.runtime.enter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_runtime_and_it_serves_any_thread() {
        let blocking = Blocking::of_process().unwrap();
        let again = std::thread::spawn(Blocking::of_process).join().unwrap().unwrap();
        assert!(std::ptr::eq(blocking.runtime, again.runtime));
        let sum = blocking.wait(async { Ok(tokio::spawn(async { 3 }).await.unwrap() + 4) });
        assert_eq!(sum.unwrap(), 7);
    }

    #[test]
    fn a_handle_of_another_process_is_refused() {
        let mut blocking = Blocking::of_process().unwrap();
        blocking.process += 1;
        assert!(matches!(blocking.wait(async { Ok(()) }), Err(ClientError::Argument(_))));
    }
}
