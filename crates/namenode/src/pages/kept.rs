//! What is made once for all who ask for it at about the same time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_process::held::held;

/// Something that is made anew when it is asked for and old.
#[derive(Debug)]
pub(super) struct Kept<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(Mutex::new(None))
    }
}

impl<T> Kept<T> {
    /// What was made not longer than `age` ago, or what `make` makes now. Others who ask meanwhile wait for that.
    pub(super) fn get(&self, age: Duration, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = held(&self.0);
        match &*kept {
            Some((made, value)) if made.elapsed() <= age => Arc::clone(value),
            _ => {
                let value = Arc::new(make());
                *kept = Some((Instant::now(), Arc::clone(&value)));
                value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_young_is_not_made_again() {
        let kept = Kept::default();
        assert_eq!(*kept.get(Duration::MAX, || 1), 1);
        assert_eq!(*kept.get(Duration::MAX, || 2), 1);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(*kept.get(Duration::ZERO, || 3), 3);
    }
}
