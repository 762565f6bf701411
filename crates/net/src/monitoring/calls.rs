//! What pages say of the calls that a server has answered. All of it is counted since the server's start.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Metrics;
use crate::rpc_server::metrics::{MethodCalls, RpcMetrics, Times};

/// The calls of all methods but those that are answered late on purpose.
fn total(methods: &[MethodCalls]) -> Times {
    let mut total = Times::default();
    for method in methods.iter().filter(|method| !method.is_held) {
        total += method.times;
    }
    total
}

fn mean_ms(total: Duration, count: u64) -> f64 {
    if count == 0 { 0.0 } else { total.as_secs_f64() * 1000.0 / count as f64 }
}

/// The beans of the server at `port` of a role (`NameNode`, `DataNode`): all calls, and each method by itself. Times are
/// means in ms.
///
/// Source: Hadoop 3.5.0 `RpcMetrics`, `RpcDetailedMetrics`.
pub fn beans(metrics: &RpcMetrics, role: &str, port: u16) -> [Value; 2] {
    let methods = metrics.methods();
    [activity(metrics, &methods, role, port), detailed_activity(&methods, role, port)]
}

fn activity(metrics: &RpcMetrics, methods: &[MethodCalls], role: &str, port: u16) -> Value {
    let total = total(methods);
    let ended = methods.iter().map(|method| method.times.calls()).sum();
    json!({
        "name": format!("Hadoop:service={role},name=RpcActivityForPort{port}"),
        "modelerType": format!("RpcActivityForPort{port}"),
        "tag.port": port.to_string(),
        "ReceivedBytes": metrics.received(),
        "SentBytes": metrics.sent(),
        "RpcQueueTimeNumOps": ended,
        "RpcQueueTimeAvgTime": mean_ms(metrics.queued(), ended),
        "RpcProcessingTimeNumOps": total.calls(),
        "RpcProcessingTimeAvgTime": mean_ms(total.durations.total, total.calls()),
        "RpcAuthorizationFailures": metrics.unauthorized(),
        "RpcAuthorizationSuccesses": metrics.authorized(),
        "RpcCallSuccesses": methods.iter().map(|method| method.times.successes()).sum::<u64>(),
        "NumOpenConnections": metrics.open_connections(),
        "NumInProcessHandler": metrics.running(),
        // Each call is begun when it has been read.
        "CallQueueLength": 0,
        "NumDroppedConnections": metrics.dropped_connections(),
        "RpcSlowCalls": metrics.slow_calls(),
        "TotalRequests": ended + metrics.running(),
    })
}

/// Methods of one name are counted together, whatever protocols they are of.
fn detailed_activity(methods: &[MethodCalls], role: &str, port: u16) -> Value {
    let mut by_name: BTreeMap<&str, Times> = BTreeMap::new();
    for method in methods {
        *by_name.entry(method.method).or_default() += method.times;
    }
    let mut bean = Map::new();
    bean.insert(
        "name".into(),
        format!("Hadoop:service={role},name=RpcDetailedActivityForPort{port}").into(),
    );
    bean.insert("modelerType".into(), format!("RpcDetailedActivityForPort{port}").into());
    bean.insert("tag.port".into(), port.to_string().into());
    for (name, times) in by_name {
        let (name, count) = (capitalized(name), times.calls());
        bean.insert(format!("{name}NumOps"), count.into());
        bean.insert(format!("{name}AvgTime"), mean_ms(times.durations.total, count).into());
    }
    Value::Object(bean)
}

fn capitalized(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(rest).collect()
}

/// The name of a Java class without its package.
fn unpackaged(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or_default()
}

/// The same for Prometheus. Methods that were never called have no figures. Protocols go without their packages.
pub fn figures(calls: &RpcMetrics, metrics: &mut Metrics) {
    let methods = calls.methods();
    let called = || methods.iter().filter(|method| method.times.calls() > 0);
    let labels = |method: &MethodCalls| {
        [("protocol", unpackaged(method.protocol)), ("method", method.method)]
    };
    for method in called() {
        let count = method.times.calls();
        metrics.counter("rpc_calls_total", "Calls answered", &labels(method), count);
    }
    for method in called() {
        let help = "Those that were answered with an exception";
        metrics.counter("rpc_errors_total", help, &labels(method), method.times.errors);
    }
    for method in called() {
        let help = "Time from the beginning of a call to its answer";
        metrics.durations("rpc_seconds", help, &labels(method), &method.times.durations);
    }
    let help = "Time that a call waited behind others of its connection";
    let ended = methods.iter().map(|method| method.times.calls()).sum();
    metrics.durations("rpc_queue_seconds", help, &[], &calls.queue_times(ended));
    for (protocol, exception, count) in calls.exceptions() {
        let help = "Calls answered with an exception, by its class";
        let labels = [("protocol", unpackaged(protocol)), ("exception", &exception)];
        metrics.counter("rpc_exceptions_total", help, &labels, count);
    }
    let counters: [(&str, &str, f64); 4] = [
        ("rpc_received_bytes_total", "Bytes read from clients", calls.received() as f64),
        ("rpc_sent_bytes_total", "Bytes written to clients", calls.sent() as f64),
        (
            "rpc_dropped_connections_total",
            "Connections closed at once for there were too many",
            calls.dropped_connections() as f64,
        ),
        (
            "rpc_authorization_failures_total",
            "Connections refused because of their user, protocol or machine",
            calls.unauthorized() as f64,
        ),
    ];
    for (name, help, value) in counters {
        metrics.counter(name, help, &[], value);
    }
    metrics.gauge("rpc_open_connections", "Connections of clients", calls.open_connections());
    metrics.gauge("rpc_calls_running", "Calls not answered yet", calls.running());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durations::Durations;

    #[test]
    fn names_are_written_as_in_hadoop() {
        for (name, wanted) in [("getFileInfo", "GetFileInfo"), ("msync", "Msync"), ("", "")] {
            assert_eq!(capitalized(name), wanted);
        }
    }

    #[test]
    fn calls_that_are_held_are_in_no_mean_but_their_own() {
        let [second, minute] = [1, 60].map(Duration::from_secs);
        let calls = |method, is_held, errors, total| {
            let mut durations = Durations { total, ..Durations::default() };
            durations.classes[4] = 2;
            let times = Times { durations, errors };
            MethodCalls { protocol: "p.Q", method, is_held, times }
        };
        let methods = [
            calls("get", false, 1, second),
            calls("wait", true, 0, minute),
            calls("get", false, 0, second),
        ];
        let metrics = RpcMetrics::new([], &[]);
        let bean = activity(&metrics, &methods, "NameNode", 8020);
        assert_eq!(bean["name"], "Hadoop:service=NameNode,name=RpcActivityForPort8020");
        assert_eq!(
            (&bean["RpcProcessingTimeNumOps"], &bean["RpcQueueTimeNumOps"]),
            (&json!(4), &json!(6))
        );
        assert_eq!(
            (&bean["RpcProcessingTimeAvgTime"], &bean["RpcCallSuccesses"]),
            (&json!(500.0), &json!(5))
        );
        let bean = detailed_activity(&methods, "NameNode", 8020);
        assert_eq!(bean["name"], "Hadoop:service=NameNode,name=RpcDetailedActivityForPort8020");
        assert_eq!((&bean["GetNumOps"], &bean["GetAvgTime"]), (&json!(4), &json!(500.0)));
        assert_eq!((&bean["WaitNumOps"], &bean["WaitAvgTime"]), (&json!(2), &json!(30_000.0)));
    }
}
