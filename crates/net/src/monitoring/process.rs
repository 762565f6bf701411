//! What servers say of their own process: `/stacks` and `/logLevel`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::events::{self, LEVELS, Level};
use crate::http::{Request, Response};
use crate::page::html::escape;
use crate::page::is_cross_site;

const TEXT: &str = "text/plain; charset=utf-8";

/// `/stacks`: the threads of the process, what each is doing and how long it has computed. A program without a virtual
/// machine cannot tell the functions that its threads are in; `first` says what of the server is under way.
///
/// Source: Hadoop 3.5.0 `HttpServer2.StackServlet`.
pub fn stacks(first: &str) -> Response {
    let mut out = format!("{first}\n");
    match threads(Path::new("/proc/self/task")) {
        Ok(threads) => {
            let _ =
                writeln!(out, "{} threads\n\n{:<18}{:<8}computed", threads.len(), "name", "state");
            for (name, state, seconds) in threads {
                let _ = writeln!(out, "{name:<18}{state:<8}{seconds:.2} s");
            }
        }
        Err(error) => {
            let _ = writeln!(out, "the threads cannot be told: {error}");
        }
    }
    Response::ok(TEXT, out)
}

/// Name, state and seconds of each thread that a folder as `/proc/self/task` tells of; those that have computed most first.
fn threads(folder: &Path) -> std::io::Result<Vec<(String, &'static str, f64)>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(folder)? {
        // One that has ended meanwhile is none.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        threads.extend(thread(&stat));
    }
    threads.sort_by(|(.., one), (.., other)| other.total_cmp(one));
    Ok(threads)
}

/// A thread of its line in `stat`. Its name can have anything in it, parentheses too.
///
/// Source: proc_pid_stat(5).
fn thread(stat: &str) -> Option<(String, &'static str, f64)> {
    /// Of the times in `stat`, in a second. It is 100 wherever Linux runs this.
    const TICKS: f64 = 100.0;
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_string();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let state = match *fields.first()? {
        "R" => "runs",
        "D" => "disk",
        "S" | "I" => "rests",
        _ => "other",
    };
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((name, state, (ticks(11)? + ticks(12)?) / TICKS))
}

/// `/logLevel`: the level of the log, after a change to `level` if that is there. It is one level for all modules,
/// whatever `log` names.
///
/// Source: Hadoop 3.5.0 `LogLevel.Servlet`, and `LogLevel.CLI`, which takes the lines that begin with the marker.
pub fn log_level(request: &Request) -> Response {
    answer_log_level(request, events::level())
}

fn answer_log_level(request: &Request, log: Option<&dyn Level>) -> Response {
    const MARKER: &str = "<!-- OUTPUT -->";
    let Some(log) = log else {
        return Response::error(503, "the log of this process has one level for good");
    };
    let mut out = String::from(
        "<!doctype html><html lang=\"en\"><title>Log level</title><h1>Log level</h1>\n",
    );
    let name = request.param("log").unwrap_or("cairn");
    let mut line = |text: &str| {
        let _ = writeln!(out, "{MARKER}{text}<br>");
    };
    line(&format!("Submitted Class Name: <b>{}</b>", escape(name)));
    if let Some(wanted) = request.param("level") {
        if is_cross_site(request) {
            return Response::error(403, "another site's page may not change the level");
        }
        line(&format!("Submitted Level: <b>{}</b>", escape(wanted)));
        match LEVELS.iter().find(|level| level.eq_ignore_ascii_case(wanted)) {
            Some(level) => {
                log.set(level);
                tracing::warn!(level, "the level of the log is another one");
                line(&format!("Setting Level to {level} ..."));
            }
            None => line(&format!("Bad Level : <b>{}</b>", escape(wanted))),
        }
    }
    line(&format!("Effective Level: <b>{}</b>", log.get()));
    out.push_str("<p><a href=\"/\">Back</a></p></html>\n");
    Response::ok("text/html; charset=utf-8", out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Method;
    use std::sync::Mutex;

    #[test]
    fn threads_are_told_with_their_names_and_times() {
        let stat = "17 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 9 0 100";
        assert_eq!(thread(stat), Some(("a (b) c".to_string(), "runs", 2.0)));
        assert_eq!(thread("17 (short) S 1"), None);
        let page = String::from_utf8(stacks("nothing is under way").body).unwrap();
        assert!(page.starts_with("nothing is under way\n"), "{page}");
        assert!(page.contains("runs") && page.contains(" threads\n"), "{page}");
    }

    struct Log(Mutex<&'static str>);

    impl Level for Log {
        fn get(&self) -> &'static str {
            *self.0.lock().unwrap()
        }

        fn set(&self, level: &'static str) {
            *self.0.lock().unwrap() = level;
        }
    }

    #[test]
    fn the_level_is_told_and_changed_as_hadoops_command_reads_it() {
        let log = Log(Mutex::new("WARN"));
        let ask = |target: &str, site: &str| {
            let mut request = Request::new(Method::GET, target).unwrap();
            request.headers.insert("sec-fetch-site", site.parse().unwrap());
            String::from_utf8(answer_log_level(&request, Some(&log)).body).unwrap()
        };
        let told = ask("/logLevel?log=a.b", "none");
        assert!(told.contains("<!-- OUTPUT -->Effective Level: <b>WARN</b>"), "{told}");
        ask("/logLevel?log=a.b&level=DEBUG", "cross-site");
        assert_eq!(log.get(), "WARN");
        let told = ask("/logLevel?log=%3Ci%3E&level=debug", "same-origin");
        assert!(told.contains("<!-- OUTPUT -->Effective Level: <b>DEBUG</b>"), "{told}");
        assert!(told.contains("&lt;i&gt;"), "{told}");
        let told = ask("/logLevel?log=a&level=%3Ci%3E", "none");
        assert!(told.contains("Bad Level : <b>&lt;i&gt;</b>") && log.get() == "DEBUG", "{told}");
        let none = Request::new(Method::GET, "/logLevel").unwrap();
        assert_eq!(answer_log_level(&none, None).status, 503);
    }
}
