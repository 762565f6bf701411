//! Keys.

use cairn_keys::{Kind, OPTIONAL_TEXT, WrongValue, keys};

const SHARE: Kind<f64> = Kind::new("0 to 1", share);

fn share(text: &str) -> Result<f64, WrongValue> {
    match text.parse::<f64>()? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it takes a number from 0 to 1".into()),
    }
}

keys! {
    /// Where spans go, and of how many commands; `Default` is nowhere.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TraceConfig {
        /// A collector of OpenTelemetry that takes OTLP by HTTP, such as `http://127.0.0.1:4318`; nothing is traced without one.
        endpoint: Option<String>, "cairn.trace.endpoint" = "" as OPTIONAL_TEXT;
        /// The share of commands, of calls of libraries, and of DataNodes' rebuilding, encoding and packing that is traced; for what is asked of them servers follow the caller.
        sample: f64, "cairn.trace.sample" = "1" as SHARE;
    }
    parts {}
    by_hand {}
    others {}
}
