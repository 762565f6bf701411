//! Spans as OTLP has them in JSON.
//!
//! Source: OpenTelemetry Protocol 1.x, "JSON Protobuf Encoding"; `opentelemetry/proto/trace/v1/trace.proto`.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use crate::context::hex;
use crate::record::{Kind, Record};

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The body of a request that tells of spans of a process.
pub(crate) fn request(process: &[(&'static str, String)], spans: &[Record]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(process)},
        "scopeSpans": [{
            "scope": {"name": "cairn", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

fn span(span: &Record) -> Value {
    let begun = span.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let ended = begun + span.took.as_nanos();
    let mut told = json!({
        "traceId": hex(&span.context.trace),
        "spanId": hex(&span.context.span),
        "name": span.name,
        "kind": kind(span.kind),
        // Numbers of 64 bits are text in JSON.
        "startTimeUnixNano": begun.to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = span.parent {
        told["parentSpanId"] = hex(&parent).into();
    }
    if let Some(failure) = &span.failure {
        told["status"] = json!({"code": ERROR, "message": failure});
    }
    told
}

/// The number of `SpanKind`.
fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    }
}

fn attributes(pairs: &[(&'static str, String)]) -> Vec<Value> {
    pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}
