//! For programs that have no runtime, such as those of other languages: one runtime for the process,
//! and calls that wait.

use crate::error::{ClientError, Result};
use cairn_trace::Span;
use std::ops::{Deref, DerefMut};
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
        if let Err(error) = self.check() {
            // It may own what [`Kept`] guards.
            std::mem::forget(call);
            return Err(error);
        }
        let Some(mut span) = Span::begun(|| name_of(&call)) else {
            return self.runtime.block_on(call);
        };
        let done = self.runtime.block_on(span.contains(call));
        done.as_ref().err().into_iter().for_each(|error| span.failed(error));
        done
    }

    /// Lets this thread start and drop what works on the runtime, until the guard goes.
    pub fn enter(&self) -> Result<EnterGuard<'static>> {
        self.check()?;
        Ok(self.runtime.enter())
    }

    /// Has what was opened with this handle dropped in this process only.
    pub fn keep<T>(&self, value: T) -> Kept<T> {
        Kept { process: self.process, value: Some(value) }
    }

    fn check(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let what = "opened before a fork: connect again in the child".to_string();
        Err(ClientError::Argument(what))
    }
}

/// What a call is called in a trace: the last two names on the way to its function, such as `FileSystem::rename`. That
/// of the compiler serves, which is for people alone.
fn name_of<T>(call: &T) -> String {
    let whole = std::any::type_name_of_val(call);
    let function = whole.split("::{{closure}}").next().unwrap_or(whole);
    let plain = function.split('<').next().unwrap_or(function);
    let last = plain.rmatch_indices("::").nth(1).map_or(0, |(at, _)| at + 2);
    plain[last..].to_string()
}

/// What a process has opened. A child of `fork` that drops its copy forgets it: the kernel's list of
/// connections that the runtime waits for is one for both, and what the child took off it the parent would never
/// hear of again.
#[derive(Debug)]
pub struct Kept<T> {
    process: u32,
    /// There until it is dropped or taken out.
    value: Option<T>,
}

/// What [`Kept`] never shows.
const GONE: &str = "a kept value is there until it is dropped";

impl<T> Kept<T> {
    /// The value, to be given to [`Blocking::wait`].
    pub fn into_inner(mut self) -> T {
        self.value.take().expect(GONE)
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(GONE)
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(GONE)
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Worker;

    impl Worker {
        async fn work(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_call_has_the_name_of_its_function_in_traces() {
        assert_eq!(name_of(&Worker.work()), "Worker::work");
        let call = async { Worker.work().await };
        assert_eq!(name_of(&call), "tests::a_call_has_the_name_of_its_function_in_traces");
    }

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
        assert!(matches!(blocking.enter(), Err(ClientError::Argument(_))));
    }

    async fn dropping(kept: Arc<()>) -> Result<(), ClientError> {
        drop(kept);
        Ok(())
    }

    #[test]
    fn what_another_process_opened_is_not_dropped() {
        let mut blocking = Blocking::of_process().unwrap();
        let opened = Arc::new(());
        drop(blocking.keep(opened.clone()));
        let kept = opened.clone();
        assert!(blocking.wait(dropping(kept)).is_ok());
        assert_eq!(Arc::strong_count(&opened), 1);
        blocking.process += 1;
        drop(blocking.keep(opened.clone()));
        assert_eq!(Arc::strong_count(&opened), 2);
        let kept = opened.clone();
        assert!(blocking.wait(dropping(kept)).is_err());
        assert_eq!(Arc::strong_count(&opened), 3);
        let kept = blocking.keep(opened.clone());
        assert!(blocking.wait(std::future::ready(Ok(kept.into_inner()))).is_err());
        assert_eq!(Arc::strong_count(&opened), 4);
    }
}
