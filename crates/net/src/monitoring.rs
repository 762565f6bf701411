//! What the pages of all servers say alike to programs that watch them: Hadoop's beans as JSON, the configuration, the
//! process (`process`), and figures for Prometheus.

use crate::durations::{BOUNDS, Durations};
use crate::http::{Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

pub mod calls;
pub mod process;

/// The media type of JSON.
pub const JSON: &str = "application/json; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `/jmx`: all beans, or those that `qry` names (`*` in a part matches any text).
///
/// Source: Hadoop 3.5.0 `JMXJsonServlet`.
pub fn jmx(beans: Vec<Value>, request: &Request) -> Response {
    let wanted = |bean: &Value| match request.param("qry") {
        None => true,
        Some(query) => bean["name"].as_str().is_some_and(|name| matches_query(name, query)),
    };
    let beans: Vec<Value> = beans.into_iter().filter(wanted).collect();
    Response::ok(JSON, json!({ "beans": beans }).to_string())
}

/// Whether an object name fits a pattern such as `Hadoop:service=NameNode,name=FS*` or `Hadoop:*`.
fn matches_query(name: &str, query: &str) -> bool {
    let Some((domain, keys)) = query.split_once(':') else { return false };
    let Some((own_domain, own_keys)) = name.split_once(':') else { return false };
    let fits = |own: &str, pattern: &str| match pattern.split_once('*') {
        None => own == pattern,
        Some((head, tail)) => {
            own.len() >= head.len() + tail.len() && own.starts_with(head) && own.ends_with(tail)
        }
    };
    let own: Vec<&str> = own_keys.split(',').collect();
    let patterns: Vec<&str> = keys.split(',').collect();
    let open = patterns.contains(&"*");
    let each = patterns.iter().filter(|pattern| **pattern != "*");
    let found = each.clone().all(|pattern| own.iter().any(|key| fits(key, pattern)));
    fits(own_domain, domain) && found && (open || each.count() == own.len())
}

/// `/conf`: the keys that were set and their values, but for those that are secret, and of those that were not set the
/// `defaults`.
///
/// Source: Hadoop 3.5.0 `ConfServlet`.
pub fn conf(properties: &[(String, String)], defaults: &[(&str, &str)]) -> Response {
    let mut all: BTreeMap<&str, (&str, &str)> =
        defaults.iter().map(|(key, value)| (*key, (*value, "default"))).collect();
    all.extend(properties.iter().map(|(key, value)| (key.as_str(), (value.as_str(), "cairn"))));
    let property = |(key, (value, resource)): (&str, (&str, &str))| {
        let value = if is_secret(key) { "<redacted>" } else { value };
        json!({"key": key, "value": value, "isFinal": false, "resource": resource})
    };
    let properties: Vec<Value> = all.into_iter().map(property).collect();
    Response::ok(JSON, json!({ "properties": properties }).to_string())
}

/// Whether what a key holds is nobody's business. Wider than Hadoop's `hadoop.security.sensitive-config-keys`, which also
/// names the keys of single object stores.
///
/// Source: Hadoop 3.5.0 `ConfigRedactor`.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let words = ["secret", "password", "credential", "account.key", "encryption.key"];
    words.iter().any(|word| key.contains(word))
        || [".pass", "token"].iter().any(|end| key.ends_with(end))
}

/// Figures in the text format of Prometheus.
#[derive(Clone, Debug)]
pub struct Metrics {
    prefix: &'static str,
    out: String,
    /// The family whose figures are being written.
    family: String,
}

impl Metrics {
    /// None yet; all names will begin with `prefix` and an underscore.
    pub fn of(prefix: &'static str) -> Metrics {
        Metrics { prefix, out: String::new(), family: String::new() }
    }

    /// A figure that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.gauge_of(name, help, &[], value);
    }

    /// The same of one of several things, which `labels` tell apart. All of one name follow each other.
    pub fn gauge_of(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        self.family(name, help, "gauge");
        self.sample(name, labels, value);
    }

    /// A figure that only rises, until the server starts anew. By rule its name ends with `_total`. Those that differ in
    /// `labels` alone are of one family, and must follow each other.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        self.family(name, help, "counter");
        self.sample(name, labels, value);
    }

    /// How many things there were by size: `classes` has for each bound in turn how many are not above it and above the
    /// one before, and behind these how many are above all; `sum` is that of all sizes. Labels are as for
    /// [`Metrics::counter`].
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        (bounds, classes): (&[f64], &[u64]),
        sum: impl Display,
    ) {
        self.family(name, help, "histogram");
        let mut count = 0;
        for (index, class) in classes.iter().enumerate() {
            count += class;
            let bound = bounds.get(index).map_or("+Inf".to_string(), f64::to_string);
            let labels = [labels, &[("le", &bound)]].concat();
            self.sample(&format!("{name}_bucket"), &labels, count);
        }
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
    }

    /// How long things took, in seconds: a [`Metrics::histogram`].
    pub fn durations(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        durations: &Durations,
    ) {
        let bounds = BOUNDS.map(|bound| bound.as_secs_f64());
        let classes = (&bounds[..], &durations.classes[..]);
        self.histogram(name, help, labels, classes, durations.total.as_secs_f64());
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.out, "{}_{name}", self.prefix);
        for (index, (label, of)) in labels.iter().enumerate() {
            let of = of.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.out, "{}{label}=\"{of}\"", if index == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {value}");
    }

    fn family(&mut self, name: &str, help: &str, kind: &str) {
        if self.family == name {
            return;
        }
        self.family = name.to_string();
        let prefix = self.prefix;
        let _ = writeln!(self.out, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}");
    }

    /// All of them.
    pub fn page(self) -> Response {
        Response::ok(PROMETHEUS, self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_keys() {
        for key in [
            "fs.s3a.secret.key",
            "hadoop.security.keystore.java-keystore-provider.password",
            "fs.azure.account.key.name",
            "ssl.server.keystore.pass",
            "dfs.adls.oauth2.credential",
            "fs.oauth.refresh.token",
            "service.token.password",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["dfs.block.access.token.enable", "dfs.namenode.name.dir", "fs.defaultFS"] {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn what_was_set_goes_before_defaults() {
        let set = [("b", "2"), ("a.secret", "x")].map(|(k, v)| (k.to_string(), v.to_string()));
        let page = conf(&set, &[("b", "1"), ("c", "3")]);
        let page: Value = serde_json::from_slice(&page.body).unwrap();
        let of = |at: usize, what: &str| page["properties"][at][what].as_str().unwrap().to_string();
        let all: Vec<_> =
            (0..3).map(|at| ["key", "value", "resource"].map(|w| of(at, w))).collect();
        let expected =
            [["a.secret", "<redacted>", "cairn"], ["b", "2", "cairn"], ["c", "3", "default"]];
        assert_eq!(all, expected.map(|row| row.map(str::to_string)));
        assert_eq!(page["properties"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn queries_match_object_names_as_jmx_does() {
        let name = "Hadoop:service=NameNode,name=FSNamesystemState";
        for (query, fits) in [
            (name, true),
            ("Hadoop:name=FSNamesystemState,service=NameNode", true),
            ("Hadoop:service=NameNode,name=FS*", true),
            ("Hadoop:service=NameNode,*", true),
            ("Hadoop:*", true),
            ("*:*", true),
            ("Hadoop:service=NameNode", false),
            ("Hadoop:service=NameNode,name=FSNamesystem", false),
            ("java.lang:*", false),
            ("nothing", false),
        ] {
            assert_eq!(matches_query(name, query), fits, "{query}");
        }
    }

    #[test]
    fn what_labels_tell_apart_has_one_text() {
        let mut metrics = Metrics::of("cairn_test");
        metrics.counter("reads_total", "Reads", &[("by", "client"), ("ok", "1")], 7);
        metrics.counter("reads_total", "Reads", &[("by", "a\\b\"c\nd")], 8);
        metrics.gauge_of("left", "What is left", &[("dir", "/1")], 0.5);
        let page = String::from_utf8(metrics.page().body).unwrap();
        let lines = [
            "# HELP cairn_test_reads_total Reads",
            "# TYPE cairn_test_reads_total counter",
            "cairn_test_reads_total{by=\"client\",ok=\"1\"} 7",
            r#"cairn_test_reads_total{by="a\\b\"c\nd"} 8"#,
            "# HELP cairn_test_left What is left",
            "# TYPE cairn_test_left gauge",
            "cairn_test_left{dir=\"/1\"} 0.5",
            "",
        ];
        assert_eq!(page, lines.join("\n"));
    }

    #[test]
    fn figures_have_a_text_and_a_type() {
        let mut metrics = Metrics::of("cairn_test");
        metrics.gauge("blocks", "Blocks there are", 7);
        let page = String::from_utf8(metrics.page().body).unwrap();
        let lines = [
            "# HELP cairn_test_blocks Blocks there are",
            "# TYPE cairn_test_blocks gauge",
            "cairn_test_blocks 7",
            "",
        ];
        assert_eq!(page, lines.join("\n"));
    }

    #[test]
    fn classes_of_a_histogram_have_those_below_in_them() {
        let mut metrics = Metrics::of("cairn_test");
        let classes = (&[0.001, 10.0][..], &[5, 0, 2][..]);
        metrics.histogram("seconds", "Times", &[("of", "a")], classes, 21.5);
        let page = String::from_utf8(metrics.page().body).unwrap();
        let lines = [
            "# HELP cairn_test_seconds Times",
            "# TYPE cairn_test_seconds histogram",
            "cairn_test_seconds_bucket{of=\"a\",le=\"0.001\"} 5",
            "cairn_test_seconds_bucket{of=\"a\",le=\"10\"} 5",
            "cairn_test_seconds_bucket{of=\"a\",le=\"+Inf\"} 7",
            "cairn_test_seconds_sum{of=\"a\"} 21.5",
            "cairn_test_seconds_count{of=\"a\"} 7",
            "",
        ];
        assert_eq!(page, lines.join("\n"));
    }
}
