//! Locks that are not gone on with after a panic.

use std::sync::{Mutex, MutexGuard};

/// What a lock guards. A panic while it was held ends the namespace: nobody may go on with what may be half done.
pub(super) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().expect("nothing has panicked while it was held")
}
