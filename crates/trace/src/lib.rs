//! Traces: which calls and transfers, of which process, were made for one command, how long each took and how it ended.
//!
//! A [`Span`] is one of them. It is begun for another one only, whose [`Context`] comes with a call; the first of a
//! trace is begun by a command ([`Span::of_process`]), a
//! call of a library, or work that a server does by itself ([`Span::begun`]). Ended spans go to a collector of OpenTelemetry
//! ([`collector::begin`]) in the background: a queue that is full loses spans, and no call waits for it.
//!
//! Without a collector nothing is begun: whoever asks for a span looks at one flag.
//!
//! Knows neither protocols nor roles: how a context is carried in Hadoop's messages is said where these are made.

pub mod collector;
mod config;
mod context;
mod otlp;
mod queue;
mod record;
mod span;

pub use config::TraceConfig;
pub use context::Context;
pub use queue::is_on;
pub use record::Kind;
pub use span::{Span, carried, current, here, sample};
