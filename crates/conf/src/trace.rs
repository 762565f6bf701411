//! Where spans of traces go.

use crate::Configuration;
use anyhow::{Context, Result};
pub use cairn_trace::is_on;
use cairn_trace::{TraceConfig, collector};
use std::time::Duration;

/// How long a program that ends waits for a collector.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the keys.
pub fn read(conf: &Configuration) -> Result<TraceConfig> {
    let mut trace = TraceConfig::default();
    conf.fill(TraceConfig::KEYS, &mut trace)?;
    Ok(trace)
}

/// Has calls of a library traced, if the keys say so; within its runtime, once or again. What is traced is told as of
/// `service`.
pub fn begin(conf: &Configuration, service: &'static str) -> Result<()> {
    let trace = read(conf)?;
    if let Some(endpoint) = trace.endpoint {
        collector::begin(&endpoint, service).context("cairn.trace.endpoint")?;
        cairn_trace::sample(trace.sample);
    }
    Ok(())
}

/// Waits a moment until what has ended is sent: the program may end now.
pub async fn flush() {
    if is_on() {
        collector::flush(PATIENCE).await;
    }
}
