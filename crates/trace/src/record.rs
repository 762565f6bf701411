//! What a collector is told of a span.

use std::time::{Duration, SystemTime};

use crate::context::Context;

/// What a span is to the span that it is done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of it, in the same process.
    Internal,
    /// What it asks of another process.
    Client,
    /// What another process has asked for.
    Server,
}

/// What was done.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) context: Context,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) failure: Option<String>,
    pub(crate) at: SystemTime,
    pub(crate) took: Duration,
}
