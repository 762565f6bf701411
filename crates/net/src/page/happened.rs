//! What has happened lately, and how much the log tells.

use std::fmt::Write as _;

use super::Region;
use super::html::{Table, Tone, badge};
use super::text::time;
use crate::events::{self, Event, LEVELS, Level};

/// Events that are shown.
const SHOWN: usize = 100;

/// The last events, but those of modules whose names begin with one of `others`, and the level of the log.
pub fn regions(others: &[&str]) -> Vec<Region> {
    let events = events::recent(others, SHOWN);
    vec![
        Region { id: "happened", html: happened(&events) },
        Region { id: "level", html: level(events::level()) },
    ]
}

fn happened(events: &[Event]) -> String {
    let columns = ["When", "Level", "What", "Where"];
    let mut table = Table::new("The last events, the newest first", &columns);
    for event in events {
        let tone = match event.level {
            "ERROR" => Tone::Bad,
            "WARN" => Tone::Warn,
            _ => Tone::Calm,
        };
        let level = badge(tone, event.level);
        table.row().text(&time(event.at_ms)).html(&level).text(&event.text).text(event.target);
    }
    table.end("Nothing has happened yet that is worth telling.")
}

fn level(log: Option<&dyn Level>) -> String {
    let Some(log) = log else { return String::new() };
    let mut options = String::new();
    for level in LEVELS {
        let selected = if level == log.get() { " selected" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(options, "<option{selected}>{level}</option>");
    }
    format!(
        "<h2>Log</h2><form action=\"/logLevel\"><input type=\"hidden\" name=\"log\" value=\"cairn\">\
         <label>Lines on standard error from<select name=\"level\">{options}</select></label>\
         <button>Change</button></form>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Level for Fixed {
        fn get(&self) -> &'static str {
            "INFO"
        }

        fn set(&self, _: &'static str) {}
    }

    #[test]
    fn events_are_text_and_the_level_is_chosen() {
        let text = "a file <b> is gone".to_string();
        let events = [Event { at_ms: 0, level: "WARN", target: "cairn_test::a", text }];
        let shown = happened(&events);
        assert!(shown.contains("a file &lt;b&gt; is gone"), "{shown}");
        assert!(shown.contains("<span class=\"badge warn\">WARN</span>"), "{shown}");
        assert!(happened(&[]).contains("Nothing has happened"));
        assert!(level(Some(&Fixed)).contains("<option selected>INFO</option><option>DEBUG"));
        assert_eq!(level(None), "");
    }
}
