//! Events as lines of JSON: `time`, `level`, `target`, `message`, `fields`, and `traceparent` where a trace is recorded.
//!
//! What must not be seen is not in events: types that hold secrets show themselves without them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cairn_net::date::Moment;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Writes each event with one call.
pub struct Lines<W>(W);

impl<W: Fn(&str)> Lines<W> {
    /// `write` gets lines with their ends.
    pub fn new(write: W) -> Lines<W> {
        Lines(write)
    }
}

impl<S: Subscriber, W: Fn(&str) + 'static> Layer<S> for Lines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let metadata = event.metadata();
        let mut line = format!(
            "{{\"time\":\"{}\",\"level\":\"{}\",\"target\":{},\"message\":{},\"fields\":{}",
            time(since),
            metadata.level(),
            Value::from(metadata.target()),
            Value::from(said.message),
            Value::from(said.fields),
        );
        if let Some(parent) = cairn_trace::here() {
            line += &format!(",\"traceparent\":{}", Value::from(parent));
        }
        (self.0)(&(line + "}\n"));
    }
}

/// A moment as RFC 3339 has it, in UTC.
fn time(since_epoch: Duration) -> String {
    let Moment { year, month, day, hour, minute, second, .. } =
        Moment::of_ms(since_epoch.as_millis() as u64);
    let micros = since_epoch.subsec_micros();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_string(), value.into());
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.add(field, format!("{value:?}")),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_string(),
            _ => self.add(field, value),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // What JSON has no number for becomes null.
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry::Registry;

    /// The lines of what `act` logs.
    fn logged(act: impl FnOnce()) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let write = move |line: &str| kept.lock().unwrap().push(line.to_string());
        tracing::subscriber::with_default(Registry::default().with(Lines::new(write)), act);
        lines.lock().unwrap().clone()
    }

    #[test]
    fn an_event_is_one_line_with_its_fields_as_they_are() {
        let error = std::io::Error::other("no\nroom \"left\"");
        let lines = logged(|| {
            tracing::warn!(target: "cairn_test", %error, ms = 7, share = 0.5, is_full = true, who = ?Some("ann"), "a disk\nis {}", "full");
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.ends_with("}\n") && line.matches('\n').count() == 1, "{line}");
        assert!(line.starts_with("{\"time\":\"20"), "{line}");
        let mut read: Value = serde_json::from_str(line).unwrap();
        let when = read["time"].take();
        let when = when.as_str().unwrap();
        assert!(when.len() == "2026-01-31T23:59:59.000000Z".len() && when.ends_with('Z'), "{when}");
        assert!(crate::time::spoken(when).is_some(), "{when}");
        let wanted = serde_json::json!({
            "time": null, "level": "WARN", "target": "cairn_test", "message": "a disk\nis full",
            "fields": {"error": "no\nroom \"left\"", "ms": 7, "share": 0.5, "is_full": true, "who": "Some(\"ann\")"},
        });
        assert_eq!(read, wanted);
    }

    #[test]
    fn moments_are_written_to_the_microsecond() {
        let moment = Duration::from_secs(1_709_251_198) + Duration::from_micros(42);
        assert_eq!(time(moment), "2024-02-29T23:59:58.000042Z");
    }

    #[test]
    fn secrets_are_not_shown() {
        use cairn_security::token::Token;
        let token = Token { identifier: vec![1], password: b"secret".to_vec(), ..Token::default() };
        let lines = logged(|| tracing::error!(?token, "a token is refused"));
        let shown = format!("{:?}", b"secret").replace(['[', ']'], "");
        assert!(!lines[0].contains("secret") && !lines[0].contains(&shown), "{}", lines[0]);
    }
}
