//! A page with plots, which needs nothing but itself.

use super::told::{Told, percent};
use crate::output::size;
use cairn_advise::tally::AGES;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}\
td,th{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}\
td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}\
code{display:block;white-space:pre-wrap;background:#f5f5f5;padding:.6rem}svg{max-width:100%;height:auto}";

const NOW: &str = "#8a8f98";
const THEN: &str = "#1f7a5c";
const WIDTH: f64 = 860.0;
const LABEL: f64 = 260.0;
const BAR: f64 = 16.0;

/// The page, with so many rows.
pub fn page(told: &Told, top: usize) -> String {
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>cairn advise</title>\
         <style>{STYLE}</style></head><body><h1>{}</h1>",
        escaped(&told.of)
    );
    let (now, then) = (told.total.now.bytes, told.bytes_then());
    out.push_str(&format!(
        "<p>{} files, {}, {} on disk. With what is advised: {}, {} less ({} %).</p>",
        told.total.files,
        size(told.total.bytes),
        size(now),
        size(then),
        size(now.saturating_sub(then)),
        percent(now.saturating_sub(then), now)
    ));
    out.push_str("<h2>All of it under each layout</h2>");
    let mut bars = vec![("as it is".to_string(), now, NOW)];
    let each = told.layouts.iter().zip(&told.total.then);
    bars.extend(each.map(|(layout, cost)| (layout.name(), cost.bytes, THEN)));
    out.push_str(&plot("Bytes on disk under each layout", &bars));
    out.push_str("<h2>Directories, now and as advised</h2>");
    let rows = told.rows.iter().take(top);
    let bars = rows.flat_map(|judged| {
        let then = match judged.advice.layout {
            Some(_) => told.name(&judged.advice),
            None => "as it is".to_string(),
        };
        let now = (judged.row.path.clone(), judged.row.tally.now.bytes, NOW);
        [now, (then, judged.bytes_then(), THEN)]
    });
    out.push_str(&plot("Bytes on disk of directories, now and then", &bars.collect::<Vec<_>>()));
    out.push_str("<h2>When it was last read</h2>");
    let bars = AGES.iter().zip(told.total.read_ago).map(|(days, bytes)| {
        let name = match *days {
            u64::MAX => "longer ago".to_string(),
            days => format!("within {days} days"),
        };
        (name, bytes, NOW)
    });
    out.push_str(&plot("Bytes by when they were last read", &bars.collect::<Vec<_>>()));
    out.push_str("<h2>Rows</h2>");
    out.push_str(&rows_table(told, top));
    out.push_str("<h2>Commands</h2>");
    let commands = told.commands(top).join("\n");
    out.push_str(&format!("<code>{}</code>", escaped(&commands)));
    out.push_str("<h2>To know</h2><ul>");
    told.notes.iter().for_each(|note| out.push_str(&format!("<li>{}</li>", escaped(note))));
    out.push_str("</ul></body></html>\n");
    out
}

fn rows_table(told: &Told, top: usize) -> String {
    let mut out = String::from(
        "<table><thead><tr><th>directory</th><th>files</th><th>bytes</th><th>on disk</th>\
         <th>shorter than 1 MiB</th><th>then</th><th>advised</th><th>why</th></tr></thead><tbody>",
    );
    for judged in told.rows.iter().take(top) {
        let tally = &judged.row.tally;
        out.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} %</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&judged.row.path),
            tally.files,
            size(tally.bytes),
            size(tally.now.bytes),
            percent(tally.short[0], tally.files),
            size(judged.bytes_then()),
            escaped(&told.name(&judged.advice)),
            escaped(&judged.advice.why.join("; "))
        ));
    }
    out + "</tbody></table>"
}

/// Bars from the left, each with its name and its size.
fn plot(title: &str, bars: &[(String, u64, &str)]) -> String {
    let most = bars.iter().map(|(_, bytes, _)| *bytes).max().unwrap_or(0).max(1);
    let height = bars.len() as f64 * (BAR + 6.0) + 6.0;
    let mut out = format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-size=\"12\" font-family=\"system-ui,sans-serif\"><title>{}</title>",
        escaped(title)
    );
    for (number, (name, bytes, colour)) in bars.iter().enumerate() {
        let top = number as f64 * (BAR + 6.0) + 3.0;
        let len = *bytes as f64 / most as f64 * (WIDTH - LABEL - 90.0);
        let (text, end) = (top + BAR - 4.0, LABEL + len + 6.0);
        out.push_str(&format!(
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABEL}\" y=\"{top}\" width=\"{len:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\
             <text x=\"{end:.1}\" y=\"{text}\">{}</text>",
            LABEL - 8.0,
            escaped(&short(name)),
            size(*bytes)
        ));
    }
    out + "</svg>"
}

/// A name that fits before a bar.
fn short(name: &str) -> String {
    const MAX: usize = 38;
    let count = name.chars().count();
    match count > MAX {
        true => format!("…{}", name.chars().skip(count - MAX + 1).collect::<String>()),
        false => name.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::advise::told::tests::told;

    #[test]
    fn the_page_refers_to_nothing_and_runs_nothing() {
        let page = page(&told("<script>&\"'"), 10);
        for refused in ["<script", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(refused), "{refused}");
        }
        assert!(page.contains("/&lt;script&gt;&amp;&quot;&#39;"));
        // Only the name of SVG's own elements.
        assert_eq!(
            page.matches("http").count(),
            page.matches("http://www.w3.org/2000/svg").count()
        );
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (3, 3));
    }

    #[test]
    fn bars_are_as_long_as_their_bytes() {
        let bars = [("all".to_string(), 200, NOW), ("half".to_string(), 100, THEN)];
        let svg = plot("title", &bars);
        assert!(svg.contains("width=\"510.0\"") && svg.contains("width=\"255.0\""), "{svg}");
        assert_eq!(short(&"x".repeat(50)).chars().count(), 38);
    }
}
