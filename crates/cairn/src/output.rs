//! What people and programs see: sizes, tables, progress bars; and the runtime that commands run in.

use anyhow::{Context, Result};
use cairn_client::ClientError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// File I/O of DataNodes blocks a worker now and then, so there are more workers than processors.
const MIN_WORKERS: usize = 8;

/// The runtime of a command.
pub fn runtime() -> Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(MIN_WORKERS.max(2 * processors))
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Prints a line like `println!`, and ends the command quietly when nobody reads any more. Where the answer is to be
/// JSON, a sentence becomes an object: `{"told": "..."}`.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { $crate::output::say(format_args!($($arg)*)) };
}

/// Prints a line to standard error like `eprintln!`. Where that cannot be written there is nobody to tell, and the
/// command goes on.
#[macro_export]
macro_rules! complain {
    ($($arg:tt)*) => { $crate::output::print_error(format_args!($($arg)*)) };
}

/// Writes a line to standard error, if that can be written.
pub fn print_error(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// With which code a command ends when nobody reads any more what it says: 128 and the number of SIGPIPE, as with
/// other programs. Not 0, which could be taken for a verdict.
pub const UNREAD: u8 = 141;

/// Whether what this process prints is for programs.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Has lines be JSON from now on.
pub fn answer_with_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Writes a line to standard output.
pub fn say(line: std::fmt::Arguments<'_>) {
    if IS_JSON.load(Ordering::Relaxed) {
        let text = line.to_string();
        match text.trim_start().chars().next() {
            Some('{' | '[') => print(format_args!("{text}\n")),
            Some(_) => print(format_args!("{}\n", serde_json::json!({"told": text}))),
            None => {}
        }
        return;
    }
    print(format_args!("{line}\n"));
}

/// Writes to standard output; a closed pipe (`cairn fs ls | head`) ends the process without a word.
pub fn print(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let written = out.write_fmt(text).and_then(|()| out.flush());
    if let Err(error) = written {
        let quiet = error.kind() == std::io::ErrorKind::BrokenPipe;
        if !quiet {
            crate::complain!("cairn: cannot write to standard output: {error}");
        }
        std::process::exit(if quiet { i32::from(UNREAD) } else { 1 });
    }
}

/// Whether nobody reads any more what a command writes to standard output.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Waits for SIGTERM or an interrupt from the keyboard, and says with which code a command exits then.
pub async fn told_to_stop() -> Result<u8> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // As a shell tells of them: 128, and the signal's number.
    Ok(tokio::select! {
        _ = terminate.recv() => 143,
        _ = interrupt.recv() => 130,
    })
}

/// A number of bytes with a binary unit: `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number as it is or, for people, as [`short_size`] writes it.
pub fn size_or_short(number: u64, human: bool) -> String {
    if human { short_size(number) } else { number.to_string() }
}

/// A number of bytes, or of anything, with the letter of a binary unit, as Hadoop's commands write it: `1.5 G`.
///
/// Source: Hadoop 3.5.0 `StringUtils.TraditionalBinaryPrefix#long2String`.
fn short_size(number: u64) -> String {
    const LETTERS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];
    if number < 1024 {
        return number.to_string();
    }
    let mut step = (number.ilog2() / 10) as usize;
    if number.is_multiple_of(1 << (10 * step)) {
        return format!("{} {}", number >> (10 * step), LETTERS[step - 1]);
    }
    let mut text = format!("{:.1}", number as f64 / (1_u64 << (10 * step)) as f64);
    if text == "1024.0" {
        step += 1;
        text = "1.0".to_string();
    }
    format!("{text} {}", LETTERS[step - 1])
}

/// What a server says, without the Java class that Hadoop's messages begin with.
fn without_class(text: &str) -> &str {
    let Some((class, message)) = text.split_once(": ") else { return text };
    let is_class = class.contains('.')
        && (class.ends_with("Exception") || class.ends_with("Error"))
        && class.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '$' | '_'));
    if is_class && !message.is_empty() { message } else { text }
}

/// What went wrong, and why, each cause once: errors often repeat what the one below them says.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let cause = without_class(&cause).to_string();
        match () {
            _ if text.is_empty() => text = cause,
            _ if text.contains(&cause) => {}
            _ if cause.starts_with(&text) => text = cause,
            _ => text = format!("{text}: {cause}"),
        }
    }
    text
}

/// Megabytes (10^6) a second.
pub fn megabytes_per_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9)
}

/// A bar that counts bytes on a terminal, and says nothing elsewhere.
pub fn byte_bar(total: u64, title: &str) -> ProgressBar {
    bar(total, title, "{bytes:>10} of {total_bytes:<10} {bytes_per_sec}")
}

/// The same, which counts files.
pub fn file_bar(total: u64, title: &str) -> ProgressBar {
    bar(total, title, "{human_pos:>10} of {human_len} files")
}

fn bar(total: u64, title: &str, counts: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(&format!("{{prefix:<34}} {{bar:28}} {counts}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(total), target)
        .with_style(style)
        .with_prefix(title.to_string())
}

/// Rows in columns as wide as their longest cell; the first column to the left, others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|s| s.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
            if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("   ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A refusal the way `hdfs ec` and `hdfs crypto` show it: the class without its package, and one line.
pub fn first_line(error: &ClientError) -> String {
    match error {
        ClientError::Remote { class, message } => {
            let class = class.rsplit('.').next().unwrap_or(class);
            format!("{class}: {}", message.lines().next().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_no_java_class() {
        for (said, told) in [
            ("java.io.IOException: no DataNode is x", "no DataNode is x"),
            ("org.apache.hadoop.ipc.A$BException: a: b", "a: b"),
            ("java.io.IOException: ", "java.io.IOException: "),
            ("nn1.example.org: refused", "nn1.example.org: refused"),
            ("x.Exception y: z", "x.Exception y: z"),
        ] {
            assert_eq!(sentence(&anyhow::anyhow!(said.to_string())), told);
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        for (bytes, want) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 29, "1.5 GiB")]
        {
            assert_eq!(size(bytes), want);
        }
    }

    #[test]
    fn short_sizes_are_hadoops() {
        for (number, want) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1 K"),
            (6000, "5.9 K"),
            (3_703_701, "3.5 M"),
            (1 << 40, "1 T"),
            ((1 << 40) - 11_111_103, "1.0 T"),
            ((1 << 20) - 1, "1.0 M"),
        ] {
            assert_eq!(short_size(number), want);
        }
    }

    #[test]
    fn a_cause_is_told_once() {
        let inner = anyhow::anyhow!("no such folder");
        let middle =
            anyhow::anyhow!("cannot open /x: {inner}").context("cannot open /x: no such folder");
        assert_eq!(sentence(&middle), "cannot open /x: no such folder");
        let error = anyhow::anyhow!("refused").context("it did not start");
        assert_eq!(sentence(&error), "it did not start: refused");
    }

    #[test]
    fn tables_align_their_columns() {
        let rows = [vec!["a".into(), "1".into()], vec!["long".into(), "200".into()]];
        assert_eq!(table(&rows), "a        1\nlong   200\n");
    }
}
