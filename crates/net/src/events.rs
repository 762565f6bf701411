//! What has happened lately in this process, as its log tells it, and how much the log tells.
//!
//! Whoever sets the log up passes events on ([`note`]) and says how its level is changed ([`serve_level`]); pages show
//! both. Without that there is nothing to show, and nothing to change.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Events that are kept, the last ones.
const KEPT_MAX: usize = 200;
/// Bytes of an event's text.
const TEXT_LEN_MAX: usize = 1000;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, ms since the epoch.
    pub at_ms: u64,
    /// `WARN`, say.
    pub level: &'static str,
    /// The module that tells it.
    pub target: &'static str,
    /// What it tells.
    pub text: String,
}

static KEPT: Mutex<VecDeque<Event>> = Mutex::new(VecDeque::new());

fn kept() -> MutexGuard<'static, VecDeque<Event>> {
    // They are whole at any time, and are text for people.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps an event, and forgets the oldest where there are many.
pub fn note(mut event: Event) {
    if event.text.len() > TEXT_LEN_MAX {
        let is_end = |end: &usize| event.text.is_char_boundary(*end);
        let end = (0..=TEXT_LEN_MAX).rev().find(is_end).unwrap_or_default();
        event.text.truncate(end);
        event.text.push('…');
    }
    let mut kept = kept();
    if kept.len() == KEPT_MAX {
        kept.pop_front();
    }
    kept.push_back(event);
}

/// The last events of modules whose names do not begin with one of `others`, the newest first, at most `most`.
pub fn recent(others: &[&str], most: usize) -> Vec<Event> {
    let is_of = |event: &&Event| !others.iter().any(|other| event.target.starts_with(other));
    kept().iter().rev().filter(is_of).take(most).cloned().collect()
}

/// The levels of a log, from the one that tells least.
pub const LEVELS: [&str; 6] = ["OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

/// How the level of a process's log is asked for and changed.
pub trait Level: Send + Sync {
    /// One of [`LEVELS`].
    fn get(&self) -> &'static str;
    /// Changes it to one of these.
    fn set(&self, level: &'static str);
}

static LEVEL: OnceLock<Box<dyn Level>> = OnceLock::new();

/// Says how the level is changed. Only the first one counts.
pub fn serve_level(level: Box<dyn Level>) {
    let _ = LEVEL.set(level);
}

/// The level of the log, if it can be changed.
pub fn level() -> Option<&'static dyn Level> {
    LEVEL.get().map(|level| &**level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(target: &'static str, text: String) -> Event {
        Event { at_ms: 1, level: "INFO", target, text }
    }

    #[test]
    fn the_last_events_are_kept_and_no_long_text() {
        note(event("one::a", "x漢".repeat(3 * TEXT_LEN_MAX)));
        assert!(recent(&[], 1)[0].text.len() < 2 * TEXT_LEN_MAX);
        for number in 0..2 * KEPT_MAX {
            note(event(if number % 2 == 0 { "one::a" } else { "two::b" }, number.to_string()));
        }
        assert_eq!(recent(&[], usize::MAX).len(), KEPT_MAX);
        let others = recent(&["one"], 2);
        let texts: Vec<&str> = others.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["399", "397"]);
    }
}
