//! What is told of each row: as a table, as JSON, as values with commas between them.

use crate::output::{size, table};
use cairn_advise::advice::{Advice, Choice};
use cairn_advise::audit::{Audit, Use};
use cairn_advise::census::{Found, Row};
use cairn_advise::durability::Failures;
use cairn_advise::money::Prices;
use cairn_advise::tally::AGES;
use cairn_advise::{Cost, Layout, Tally};
use serde_json::{Value, json};

/// A row with what was decided.
pub struct Judged {
    pub row: Row,
    pub advice: Advice,
    pub used: Option<Use>,
}

/// All that is told.
pub struct Told {
    /// The image, or the file system.
    pub of: String,
    pub layouts: Vec<Layout>,
    pub rows: Vec<Judged>,
    pub total: Tally,
    pub failures: Failures,
    pub money: Option<Prices>,
    /// What to know beside it.
    pub notes: Vec<String>,
}

impl Told {
    pub fn new(
        of: String,
        found: Found,
        audit: Option<Audit>,
        failures: Failures,
        money: Option<Prices>,
        choice: &Choice,
        notes: Vec<String>,
    ) -> Told {
        let Found { layouts, rows, total } = found;
        let judge = |row: Row| {
            let used = audit.as_ref().and_then(|audit| audit.of(&row.path)).cloned();
            let advice = choice.advise(&layouts, &row, used.as_ref(), &failures);
            Judged { row, advice, used }
        };
        let rows = rows.into_iter().map(judge).collect();
        Told { of, layouts, rows, total, failures, money, notes }
    }

    /// Bytes on disk if all is done that is advised.
    pub fn bytes_then(&self) -> u64 {
        self.rows.iter().fold(0, |sum: u64, judged| sum.saturating_add(judged.bytes_then()))
    }

    pub fn name(&self, advice: &Advice) -> String {
        advice.layout.map_or_else(|| "as it is".to_string(), |number| self.layouts[number].name())
    }

    /// The table, the commands and the notes.
    pub fn text(&self, top: usize) -> String {
        let mut lines = vec![format!(
            "{}: {} files, {}, {} on disk",
            self.of,
            self.total.files,
            size(self.total.bytes),
            size(self.total.now.bytes)
        )];
        let then = self.bytes_then();
        let saved = self.total.now.bytes.saturating_sub(then);
        let mut sum = format!("with what is advised: {} on disk, {} less", size(then), size(saved));
        if let Some(prices) = &self.money {
            let less = prices.a_year(self.total.now.bytes) - prices.a_year(then);
            sum.push_str(&format!(", which saves {less:.0} a year"));
        }
        lines.push(sum);
        lines.push(String::new());
        lines.push(table(&self.layout_rows()));
        let head = ["directory", "files", "bytes", "on disk", "short", "then", "advised", "why"];
        let mut rows = vec![head.map(str::to_string).to_vec()];
        rows.extend(self.rows.iter().take(top).map(|judged| {
            let tally = &judged.row.tally;
            let merged = match judged.row.merged {
                0 => judged.row.path.clone(),
                more => format!("{} (+{more})", judged.row.path),
            };
            vec![
                merged,
                tally.files.to_string(),
                size(tally.bytes),
                size(tally.now.bytes),
                format!("{} %", percent(tally.short[0], tally.files)),
                size(judged.bytes_then()),
                self.name(&judged.advice),
                judged.advice.why.join("; "),
            ]
        }));
        lines.push(table(&rows));
        if self.rows.len() > top {
            lines.push(format!("{} more rows: --top, --json, --csv", self.rows.len() - top));
        }
        lines.extend(self.commands(top).into_iter().map(str::to_string));
        lines.push(String::new());
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.join("\n") + "\n"
    }

    /// The commands for so many rows, each once.
    pub fn commands(&self, top: usize) -> Vec<&str> {
        let mut commands: Vec<&str> = Vec::new();
        for command in self.rows.iter().take(top).flat_map(|judged| &judged.advice.commands) {
            if !commands.contains(&command.as_str()) {
                commands.push(command);
            }
        }
        commands
    }

    /// All of it under each layout.
    fn layout_rows(&self) -> Vec<Vec<String>> {
        let mut head = vec![
            "all of it as",
            "on disk",
            "blocks",
            "replicas",
            "repair a year",
            "years to a loss",
        ];
        head.extend(self.money.as_ref().map(|_| "cost a year"));
        let mut rows = vec![head.into_iter().map(str::to_string).collect::<Vec<String>>()];
        let mut add = |name: String, cost: &Cost, years: Option<f64>| {
            let mut row = vec![
                name,
                size(cost.bytes),
                cost.blocks.to_string(),
                cost.replicas.to_string(),
                size(self.failures.repair_bytes_a_year(cost) as u64),
                years.map_or("-".to_string(), |years| format!("{years:.1e}")),
            ];
            row.extend(
                self.money.as_ref().map(|prices| format!("{:.0}", prices.a_year(cost.bytes))),
            );
            rows.push(row);
        };
        add("it is now".to_string(), &self.total.now, None);
        for (layout, cost) in self.layouts.iter().zip(&self.total.then) {
            add(layout.name(), cost, Some(self.failures.years_to_loss(layout, cost)));
        }
        rows
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|judged| {
            let mut row = self.tally_json(&judged.row.tally);
            row["path"] = judged.row.path.clone().into();
            row["merged_directories"] = judged.row.merged.into();
            row["advised"] = judged.advice.layout.map(|number| self.layouts[number].name()).into();
            row["bytes_on_disk_then"] = judged.bytes_then().into();
            row["why"] = judged.advice.why.clone().into();
            row["commands"] = judged.advice.commands.clone().into();
            row["audit"] = judged.used.as_ref().map_or(Value::Null, |used| {
                json!({
                    "opens": used.opens,
                    "creates": used.creates,
                    "appends": used.appends,
                    "last_open": used.last_open,
                })
            });
            row
        });
        json!({
            "of": self.of,
            "notes": self.notes,
            "total": self.tally_json(&self.total),
            "bytes_on_disk_then": self.bytes_then(),
            "rows": rows.collect::<Vec<Value>>(),
        })
    }

    fn tally_json(&self, tally: &Tally) -> Value {
        let layouts = self.layouts.iter().zip(&tally.then).map(|(layout, cost)| {
            let mut told = self.cost_json(cost);
            told["years_to_loss"] = self.failures.years_to_loss(layout, cost).into();
            (layout.name(), told)
        });
        let ages = AGES.iter().zip(tally.read_ago).map(|(days, bytes)| {
            let name = match *days {
                u64::MAX => "older".to_string(),
                days => format!("{days}d"),
            };
            (name, Value::from(bytes))
        });
        json!({
            "files": tally.files,
            "bytes": tally.bytes,
            "files_striped": tally.striped,
            "files_open": tally.open,
            "files_below_1m": tally.short[0],
            "files_below_6m": tally.short[1],
            "files_below_128m": tally.short[2],
            "bytes_in_one_copy": tally.unsafe_bytes,
            "last_written_ms": tally.last_ms.0,
            "last_read_ms": tally.last_ms.1,
            "bytes_by_last_read": ages.collect::<serde_json::Map<String, Value>>(),
            "now": self.cost_json(&tally.now),
            "as": layouts.collect::<serde_json::Map<String, Value>>(),
        })
    }

    fn cost_json(&self, cost: &Cost) -> Value {
        let mut told = json!({
            "bytes_on_disk": cost.bytes,
            "blocks": cost.blocks,
            "replicas": cost.replicas,
            "repair_bytes_a_year": self.failures.repair_bytes_a_year(cost),
        });
        if let Some(prices) = &self.money {
            told["cost_a_year"] = prices.a_year(cost.bytes).into();
        }
        told
    }

    /// A line for each row, with a head.
    pub fn csv(&self) -> String {
        let mut head: Vec<String> =
            ["path", "files", "bytes", "bytes_on_disk", "blocks", "replicas"]
                .map(str::to_string)
                .to_vec();
        head.extend(self.layouts.iter().map(Layout::name));
        head.extend(["advised", "bytes_on_disk_then", "why"].map(str::to_string));
        let mut out = head.join(",") + "\n";
        for judged in &self.rows {
            let tally = &judged.row.tally;
            let mut row = vec![quoted(&judged.row.path)];
            let Cost { bytes, blocks, replicas, .. } = tally.now;
            row.extend(
                [tally.files, tally.bytes, bytes, blocks, replicas].map(|of| of.to_string()),
            );
            row.extend(tally.then.iter().map(|cost| cost.bytes.to_string()));
            row.push(self.name(&judged.advice));
            row.push(judged.bytes_then().to_string());
            row.push(quoted(&judged.advice.why.join("; ")));
            out.push_str(&(row.join(",") + "\n"));
        }
        out
    }
}

impl Judged {
    /// Bytes on disk if the advice is taken.
    pub fn bytes_then(&self) -> u64 {
        let tally = &self.row.tally;
        self.advice.layout.map_or(tally.now.bytes, |number| tally.then[number].bytes)
    }
}

pub fn percent(part: u64, of: u64) -> u64 {
    (u128::from(part) * 100 / u128::from(of.max(1))) as u64
}

/// A value of CSV (RFC 4180). What a spreadsheet would take for a formula is kept from it.
fn quoted(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text.to_string(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use cairn_advise::census::{Asked, Census, FileFacts, Kept};

    pub fn told(name: &str) -> Told {
        let mut census = Census::new(Asked::new(0), "/", 1);
        let row = census.row(census.root(), name).unwrap();
        let directory = census.directory(row);
        let len = 768 << 20;
        census.add(
            directory,
            &FileFacts {
                len,
                block_len: 128 << 20,
                blocks: 6,
                kept: Kept::Copies(3),
                written_ms: 0,
                read_ms: 0,
                is_open: false,
            },
        );
        let choice = Choice { nodes: 12, own_layouts: false, saving_min: 0.1 };
        let (failures, money) = (Failures::default(), Some(Prices::default()));
        let notes = vec!["a note".to_string()];
        Told::new("image".into(), census.end(), None, failures, money, &choice, notes)
    }

    #[test]
    fn the_table_has_what_is_advised_and_how() {
        let text = told("large").text(10);
        for part in [
            "image: 1 files, 768.0 MiB, 2.2 GiB on disk",
            "with what is advised: 1.1 GiB on disk, 1.1 GiB less, which saves ",
            "hdfs ec -setPolicy -path /large -policy RS-6-3-1024k",
            "note: a note",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn json_and_csv_have_every_layout() {
        let told = told("a,\"b");
        let json = told.json();
        let row = &json["rows"][0];
        assert_eq!(row["path"], "/a,\"b");
        assert_eq!(row["as"]["RS-10-4-1024k"]["bytes_on_disk"], 1_128_267_776_u64);
        assert_eq!(row["advised"], "RS-6-3-1024k");
        assert_eq!(json["total"]["now"]["replicas"], 18);
        let csv = told.csv();
        let mut lines = csv.lines();
        assert!(lines.next().unwrap().contains(",3x,RS-6-3-1024k,RS-3-2-1024k,RS-10-4-1024k,"));
        assert!(lines.next().unwrap().starts_with("\"/a,\"\"b\",1,805306368,2415919104,6,18,"));
        assert_eq!(quoted("=1+1"), "'=1+1");
    }
}
