//! What operators see of a running server, hold back in it and change: its background work ([`workers`]), and keys that
//! take new values while it runs ([`reconfiguration`]).
//!
//! Knows no role: each says in a table of its own which work it does.

pub mod reconfiguration;
pub mod workers;
