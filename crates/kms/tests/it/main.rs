//! The client against a small server that answers as Hadoop's does, or fails as servers do.

mod asking;
mod failing;
mod queue;
mod server;
