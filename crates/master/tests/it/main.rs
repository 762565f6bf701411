//! Operations with others between their steps.

mod contiguous;
mod host;
mod operations;
