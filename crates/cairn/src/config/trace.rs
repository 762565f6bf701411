//! Where spans of traces go.

use super::Configuration;
use anyhow::Result;
use cairn_trace::TraceConfig;

/// Reads the keys.
pub fn read(conf: &Configuration) -> Result<TraceConfig> {
    let mut trace = TraceConfig::default();
    conf.fill(TraceConfig::KEYS, &mut trace)?;
    Ok(trace)
}
