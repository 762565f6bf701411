//! What operators see of a running server and hold back in it: its background work ([`workers`]).
//!
//! Knows no role: each says in a table of its own which work it does.

pub mod workers;
