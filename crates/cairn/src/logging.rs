//! The log of a process: lines on standard error from a level on, which can change, for people or as JSON, and the last
//! events for pages.

mod json;

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use self::json::Lines;
use cairn_net::events::{self, Event, LEVELS, Level};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// What has happened is kept for pages from this level on.
const KEPT: LevelFilter = LevelFilter::INFO;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Begins to log from `level` on.
pub fn begin(level: tracing::Level, format: Format) {
    let (filter, handle) = reload::Layer::new(LevelFilter::from_level(level));
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Format::Text => tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            // It would be told of by a line that panics if it cannot be written either.
            .log_internal_errors(false)
            .boxed(),
        Format::Json => Lines::new(|line| {
            // There is nobody else to tell.
            let _ = std::io::stderr().write_all(line.as_bytes());
        })
        .boxed(),
    };
    Registry::default().with(lines.with_filter(filter)).with(Recent.with_filter(KEPT)).init();
    events::serve_level(Box::new(Served(handle)));
}

struct Served(reload::Handle<LevelFilter, Registry>);

impl Level for Served {
    fn get(&self) -> &'static str {
        let is =
            |level: &LevelFilter| LEVELS.iter().position(|name| level_of(name) == Some(*level));
        let at = self.0.with_current(is).ok().flatten();
        at.map_or(LEVELS[0], |at| LEVELS[at])
    }

    fn set(&self, level: &'static str) {
        if let Some(level) = level_of(level) {
            // It is there as long as the process.
            let _ = self.0.reload(level);
        }
    }
}

fn level_of(name: &str) -> Option<LevelFilter> {
    name.parse().ok()
}

/// Keeps what has happened.
struct Recent;

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata: &'static Metadata<'static> = event.metadata();
        let mut text = Text::default();
        event.record(&mut text);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        events::note(Event {
            at_ms: since.as_millis() as u64,
            level: metadata.level().as_str(),
            target: metadata.target(),
            text: text.message + &text.fields,
        });
    }
}

/// An event's message, and its other fields behind it.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_in_words_and_levels_have_names() {
        let subscriber = Registry::default().with(Recent.with_filter(KEPT));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "cairn_test", disk = "/d 1", ms = 7, "a disk is slow");
            tracing::debug!(target: "cairn_test", "nobody wants to know");
        });
        let kept = events::recent(&["cairn_net"], usize::MAX);
        let of_test: Vec<_> = kept.iter().filter(|event| event.target == "cairn_test").collect();
        let [event] = of_test[..] else { panic!("{kept:?}") };
        assert_eq!((event.level, event.text.as_str()), ("INFO", "a disk is slow disk=/d 1 ms=7"));
        assert!(LEVELS.iter().all(|name| level_of(name).is_some()));
    }

    #[test]
    fn the_level_can_change() {
        let (filter, handle) = reload::Layer::new(LevelFilter::WARN);
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
        let subscriber = Registry::default().with(lines.with_filter(filter));
        tracing::subscriber::with_default(subscriber, || {
            let served = Served(handle);
            assert_eq!(served.get(), "WARN");
            served.set("DEBUG");
            assert_eq!(served.get(), "DEBUG");
            served.set("OFF");
            assert_eq!(served.get(), "OFF");
        });
    }
}
