//! Locks on what a server's state is made of. Where a panic has struck while one was held, nobody goes on with what it
//! guards: it may be half done. Whoever comes to it panics too, and the process ends ([`broken`]).

use std::sync::{
    LazyLock, LockResult, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use tokio::sync::watch;

static BROKEN: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));

/// What a lock guards.
pub fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    whole(lock.lock())
}

/// What a lock guards, to read.
pub fn held_read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    whole(lock.read())
}

/// What a lock guards, to change.
pub fn held_write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    whole(lock.write())
}

/// What a wait on a lock gives back.
pub fn whole<G>(taken: LockResult<G>) -> G {
    taken.unwrap_or_else(|_| {
        BROKEN.send_replace(true);
        panic!("a panic has struck at what a lock guards")
    })
}

/// Completes when somebody has come to a lock at which a panic has struck, anywhere in the process, and says so. What
/// runs a server should end the process then.
pub async fn broken() -> String {
    // The sender is never dropped.
    let _ = BROKEN.subscribe().wait_for(|broken| *broken).await;
    "a panic has struck at a part of the server's state".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    #[tokio::test]
    async fn nobody_goes_on_with_what_a_panic_has_struck() {
        let (lock, shared) = (Mutex::new(1), RwLock::new(2));
        assert_eq!(*held(&lock), 1);
        assert_eq!(*held_read(&shared), 2);
        assert_eq!(*held_write(&shared), 2);
        // Who only reads leaves it whole.
        let reads = catch_unwind(AssertUnwindSafe(|| {
            let _held = held_read(&shared);
            panic!("while it is read");
        }));
        assert!(reads.is_err());
        assert_eq!(*held_read(&shared), 2);
        assert!(tokio::time::timeout(Duration::ZERO, broken()).await.is_err());
        let changes = catch_unwind(AssertUnwindSafe(|| {
            let _held = (held(&lock), held_write(&shared));
            panic!("while it is changed");
        }));
        assert!(changes.is_err());
        for take in [&(|| drop(held(&lock))) as &dyn Fn(), &|| drop(held_read(&shared)), &|| {
            drop(held_write(&shared))
        }] {
            assert!(catch_unwind(AssertUnwindSafe(take)).is_err());
        }
        assert_eq!(broken().await, "a panic has struck at a part of the server's state");
    }
}
