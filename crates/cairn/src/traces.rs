//! What this process tells of itself in traces: a command is their first span, and servers add theirs.

use crate::{Settings, config};
use anyhow::{Context as _, Result};
use cairn_trace::{Context, Span, collector};
use std::time::Duration;

/// How long a command that has ended waits for a collector.
const PATIENCE: Duration = Duration::from_secs(2);
/// Where a program that runs commands says which span they belong to.
///
/// Source: OpenTelemetry, "Environment Variables as Context Propagation Carriers".
const PARENT: &str = "TRACEPARENT";

/// The process, as far as traces are concerned.
pub struct Traced(Option<Span>);

impl Traced {
    /// Begins, within the runtime. Nothing is recorded without a collector in the configuration.
    pub fn begin(settings: &Settings, name: &str, is_server: bool) -> Result<Traced> {
        // Whoever needs the configuration tells what is wrong with it.
        let Ok(conf) = settings.configuration() else { return Ok(Traced(None)) };
        let trace = config::trace::read(&conf)?;
        let Some(endpoint) = trace.endpoint else { return Ok(Traced(None)) };
        let said = std::env::var(PARENT).ok();
        let parent = said.as_deref().and_then(|said| Context::read(said.as_bytes()));
        // Who has begun a trace has decided already.
        let is_chosen = if said.is_some() { parent.is_some() } else { share() < trace.sample };
        if !is_server && !is_chosen {
            return Ok(Traced(None));
        }
        collector::begin(&endpoint, service(name)).context("cairn.trace.endpoint")?;
        // What a command does belongs to its own span.
        cairn_trace::sample(trace.sample);
        Ok(Traced(if is_server { None } else { Span::of_process(format!("cairn {name}"), parent) }))
    }

    /// Ends, and waits a moment until what has ended is sent.
    pub async fn end(mut self, failure: Option<&anyhow::Error>) {
        if let (Some(span), Some(error)) = (&mut self.0, failure) {
            span.failed(format!("{error:#}"));
        }
        drop(self);
        collector::flush(PATIENCE).await;
    }
}

/// As what a process is shown.
fn service(name: &str) -> &'static str {
    match name {
        "namenode" => "cairn-namenode",
        "datanode" => "cairn-datanode",
        "gateway" => "cairn-gateway",
        "cluster" => "cairn-cluster",
        _ => "cairn",
    }
}

/// A number from 0 to 1, without 1.
fn share() -> f64 {
    let mut random = [0; 4];
    // Without random numbers everything is traced.
    let _ = getrandom::fill(&mut random);
    f64::from(u32::from_le_bytes(random)) / (f64::from(u32::MAX) + 1.0)
}
