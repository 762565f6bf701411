//! What a role says of the work that it does.

/// One kind of work, as a role's table says it.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// A short word, for commands and figures.
    pub name: &'static str,
    /// What it is for, as a sentence.
    pub does: &'static str,
    /// Whether it can be paused.
    pub pause: Pause,
}

/// Whether a kind of work can be paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It can: what it does may wait.
    Safe,
    /// It cannot: data, or who waits for it, would be in danger.
    Never,
    /// It has a way of its own, which lasts over starts: this command.
    By(&'static str),
}
