//! The answers that many operations give.

use cairn_net::http::{Answer, Response};
use serde_json::Value;

use crate::data::OCTETS;
use crate::failure::JSON;

/// An answer with a value.
pub(crate) fn told(value: Value) -> Answer {
    Response::ok(JSON, value.to_string()).into()
}

/// An answer that says only that it is done.
pub(crate) fn done() -> Answer {
    Response::new(200, OCTETS, Vec::new()).into()
}

/// The same of operations whose answers have no type in Hadoop.
pub(crate) fn done_untyped() -> Answer {
    Response::new(200, "", Vec::new()).into()
}
