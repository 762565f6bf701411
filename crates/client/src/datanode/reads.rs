//! Reads that are under way at once, all of them driven by the task that waits for them: none is spawned,
//! so what they read into may be the caller's.

use cairn_net::Boxed;
use std::future::poll_fn;
use std::task::Poll;

/// Reads under way. Dropping them gives them up.
pub(crate) struct Reads<'a, T> {
    under_way: Vec<Boxed<'a, T>>,
}

impl<'a, T> Reads<'a, T> {
    pub(crate) fn new() -> Reads<'a, T> {
        Reads { under_way: Vec::new() }
    }

    /// Adds a read, which begins with the next [`Reads::next`].
    pub(crate) fn push(&mut self, read: impl Future<Output = T> + Send + 'a) {
        self.under_way.push(Box::pin(read));
    }

    /// Reads that have not ended.
    pub(crate) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// The outcome of the first read that ends; `None` if there is none.
    pub(crate) async fn next(&mut self) -> Option<T> {
        if self.under_way.is_empty() {
            return None;
        }
        poll_fn(|context| {
            for index in 0..self.under_way.len() {
                if let Poll::Ready(outcome) = self.under_way[index].as_mut().poll(context) {
                    drop(self.under_way.swap_remove(index));
                    return Poll::Ready(Some(outcome));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Where a read puts its bytes.
pub(crate) enum Place<'a> {
    /// Where the caller wants them.
    Caller(&'a mut [u8]),
    /// Apart from there.
    Apart(Vec<u8>),
}

impl Place<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Place::Caller(bytes) => bytes,
            Place::Apart(bytes) => bytes,
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Place::Caller(bytes) => bytes,
            Place::Apart(bytes) => bytes,
        }
    }
}
