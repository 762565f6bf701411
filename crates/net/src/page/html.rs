//! Markup: what is text becomes text, whatever is in it.

use std::fmt::Write as _;

use super::text::number;
use crate::http::percent_encode;

/// Text that cannot end an element or an attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A name may turn the text behind it around, or break its line.
            control if control.is_control() || is_direction(control) => {
                let _ = write!(out, "\u{fffd}");
            }
            other => out.push(other),
        }
    }
    out
}

/// Characters that change the direction of what follows.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A part of an address.
pub fn encode(text: &str) -> String {
    percent_encode(text, false)
}

/// A link; `href` is an address of which each part is encoded, `text` is text.
pub fn link(href: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(href), escape(text))
}

/// How a state is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Nothing is lost, but it is not as it should be.
    Warn,
    /// Something is lost, or does not work.
    Bad,
    /// Neither.
    Calm,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
            Tone::Calm => "calm",
        }
    }
}

/// A state in a word or two of text, in its colour.
pub fn badge(tone: Tone, text: &str) -> String {
    format!("<span class=\"badge {}\">{}</span>", tone.class(), escape(text))
}

/// How full something is, 0 to 100, with a text that says what.
pub fn bar(percent: f64, label: &str) -> String {
    let percent = percent.clamp(0.0, 100.0);
    let tone = if percent >= 95.0 {
        "bad"
    } else if percent >= 85.0 {
        "warn"
    } else {
        "good"
    };
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\"><rect class=\"rest\" width=\"100\" height=\"8\"/>\
         <rect class=\"{tone}\" width=\"{percent:.1}\" height=\"8\"/></svg>",
        escape(label)
    )
}

/// How a figure went over time, the oldest first, drawn up to the greatest one; `label` says what it is.
pub fn chart(values: &[f64], label: &str) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let scale = if most > 0.0 { 46.0 / most } else { 0.0 };
    let step = 300.0 / values.len().saturating_sub(1).max(1) as f64;
    let mut points = String::new();
    for (index, value) in values.iter().enumerate() {
        let _ = write!(points, "{:.1},{:.1} ", index as f64 * step, 48.0 - value * scale);
    }
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 300 50\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\"><polyline points=\"{}\"/></svg>",
        escape(label),
        points.trim_end()
    )
}

/// A figure with what belongs to it; all of it is markup.
pub fn card(name: &str, figure: &str, rest: &str) -> String {
    format!("<section class=\"card\"><h2>{name}</h2><p class=\"big\">{figure}</p>{rest}</section>")
}

/// A number that should be 0.
pub fn count(count: u64, tone: Tone) -> String {
    match count {
        0 => "0".to_string(),
        count => badge(tone, &number(count)),
    }
}

/// Names with values, as a list of two columns.
#[derive(Clone, Debug, Default)]
pub struct Facts(String);

impl Facts {
    /// With a value that is text.
    pub fn text(self, name: &str, value: &str) -> Facts {
        self.html(name, &escape(value))
    }

    /// With a value that is markup.
    pub fn html(mut self, name: &str, value: &str) -> Facts {
        let _ = write!(self.0, "<dt>{}</dt><dd>{value}</dd>", escape(name));
        self
    }

    /// All of them.
    pub fn end(self) -> String {
        format!("<dl>{}</dl>", self.0)
    }
}

/// A table that is wider than a narrow window where it has to be.
#[derive(Clone, Debug)]
pub struct Table {
    caption: String,
    head: String,
    rows: String,
    is_row_open: bool,
}

impl Table {
    /// A table with a caption, which is text, and the names of its columns; those that begin with `#` have numbers.
    pub fn new(caption: &str, columns: &[&str]) -> Table {
        let mut head = String::new();
        for column in columns {
            let _ = match column.strip_prefix('#') {
                Some(name) => write!(head, "<th scope=\"col\" class=\"n\">{}</th>", escape(name)),
                None => write!(head, "<th scope=\"col\">{}</th>", escape(column)),
            };
        }
        Table { caption: escape(caption), head, rows: String::new(), is_row_open: false }
    }

    /// Begins a row; the cells follow.
    pub fn row(&mut self) -> &mut Table {
        self.end_row();
        self.rows.push_str("<tr>");
        self.is_row_open = true;
        self
    }

    fn end_row(&mut self) {
        if std::mem::take(&mut self.is_row_open) {
            self.rows.push_str("</tr>");
        }
    }

    /// A cell with text.
    pub fn text(&mut self, text: &str) -> &mut Table {
        self.html(&escape(text))
    }

    /// A cell with markup.
    pub fn html(&mut self, html: &str) -> &mut Table {
        let _ = write!(self.rows, "<td>{html}</td>");
        self
    }

    /// A cell with a figure.
    pub fn figure(&mut self, figure: &str) -> &mut Table {
        let _ = write!(self.rows, "<td class=\"n\">{}</td>", escape(figure));
        self
    }

    /// A cell with a number that should be 0.
    pub fn count(&mut self, count: u64, tone: Tone) -> &mut Table {
        let _ = write!(self.rows, "<td class=\"n\">{}</td>", self::count(count, tone));
        self
    }

    /// The table; without rows, `nothing` in its place.
    pub fn end(mut self, nothing: &str) -> String {
        self.end_row();
        if self.rows.is_empty() {
            return format!("<h2>{}</h2><p>{}</p>", self.caption, escape(nothing));
        }
        format!(
            "<div class=\"wide\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\"><table>\
             <caption>{0}</caption><thead><tr>{1}</tr></thead><tbody>{2}</tbody></table></div>",
            self.caption, self.head, self.rows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup_or_turn_what_follows() {
        assert_eq!(escape("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
        assert_eq!(escape("a\u{202e}b\nc\u{2066}d"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
        assert_eq!(escape("漢字 äöü 🦀"), "漢字 äöü 🦀");
        let mut table = Table::new("<t>", &["<c>", "#<n>"]);
        table.row().text("<x>").figure("<1>");
        let made = [
            table.end("none"),
            Table::new("<t>", &[]).end("<none>"),
            Facts::default().text("<a>", "<b>").end(),
            badge(Tone::Bad, "<bad>"),
            bar(50.0, "\"<bar>"),
            chart(&[1.0], "\"<chart>"),
            link("/?a=\"<", "<l>"),
        ];
        for html in made {
            for text in ["<t>", "<c>", "<n>", "<x>", "<1>", "<none>", "<a>\"", "<bad>", "<bar>"] {
                assert!(!html.contains(text), "{text} in {html}");
            }
            assert!(!html.contains("\"\"") && !html.contains("<chart>") && !html.contains("<l>"));
        }
    }

    #[test]
    fn charts_reach_from_the_oldest_to_the_newest_and_to_the_greatest() {
        assert!(chart(&[0.0, 2.0, 1.0], "x").contains("\"0.0,48.0 150.0,2.0 300.0,25.0\""));
        assert!(chart(&[0.0, 0.0], "x").contains("\"0.0,48.0 300.0,48.0\""));
        assert!(chart(&[], "x").contains("points=\"\""));
        assert!(bar(f64::MAX, "x").contains("class=\"bad\" width=\"100.0\""));
    }
}
