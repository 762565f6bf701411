//! Work that lasts as long as a server: when it panics, the server is to stop rather than to go on without it.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;

use tokio::task::JoinError;

/// Does `work` to its end; an error says with what it panicked.
///
/// Source: Hadoop 3.5.0 `BlockManager.RedundancyMonitor#run`, which ends the process.
pub async fn unbroken(work: impl Future<Output = ()>) -> Result<(), String> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // What has panicked is not polled again.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(state) => state.map(Ok),
            Err(panic) => Poll::Ready(Err(text_of(&*panic))),
        }
    })
    .await
}

/// What work that may block gives. If it panics, so does who waits for it; if the runtime stops before it begins, that
/// waits for ever.
pub async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(_)) => std::future::pending().await,
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_told_and_nothing_else_is() {
        let number = 7;
        assert_eq!(unbroken(async {}).await, Ok(()));
        assert_eq!(unbroken(async { panic!("broken") }).await, Err("broken".into()));
        let late = async move {
            tokio::task::yield_now().await;
            panic!("{number}")
        };
        assert_eq!(unbroken(late).await, Err("7".into()));
        let elsewhere = async { blocking(|| panic!("there")).await };
        assert_eq!(unbroken(elsewhere).await, Err("there".into()));
        assert_eq!(blocking(|| 7).await, 7);
        let odd = unbroken(async { std::panic::panic_any(5) }).await;
        assert_eq!(odd, Err("a panic without a text".into()));
    }
}
