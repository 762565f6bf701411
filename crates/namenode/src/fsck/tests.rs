//! What a check says of who asks, where that was shown.

use super::*;
use crate::NameNodeConfig;
use crate::config::AuditConfig;
use cairn_net::http::Method;
use cairn_net::rpc_server::{Authentication, UserInfo};
use std::time::Duration;

/// A check that somebody asks for by a ticket, or by word; and the line of the audit log.
async fn told(has_ticket: bool) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("audit.log");
    let audit = AuditConfig { file: Some(file.clone()), ..AuditConfig::default() };
    let config = NameNodeConfig { audit, ..NameNodeConfig::of_test(dir.path()) };
    let running = NameNode::start(config).await.unwrap();
    let mut request = Request::new(Method::GET, "/fsck?user.name=ann&path=/").unwrap();
    let principal = "ann@EXAMPLE.COM".to_string();
    let by = Authentication::Kerberos { effective: principal.clone(), principal };
    request.user =
        has_ticket.then(|| Arc::new(UserInfo { effective: "ann".to_string(), real: None, by }));
    let (sender, mut body) = mpsc::channel(PIECES_MAX);
    let caller = running.node().caller_named(user(&request).unwrap()).await;
    let (options, peer) = (Options::from_query(&request.query), Ipv4Addr::LOCALHOST.into());
    let out = Out::new(sender, false);
    Check::new(Arc::clone(running.node()), (caller, way_in(&request)), peer, options, out)
        .run()
        .await;
    let text = body.recv().await.unwrap();
    let mut lines = String::new();
    while lines.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        lines = std::fs::read_to_string(&file).unwrap();
    }
    running.shutdown().await;
    (String::from_utf8(text.to_vec()).unwrap(), lines)
}

#[tokio::test]
async fn a_check_says_how_it_is_known_who_asks() {
    for (has_ticket, way) in [(true, "KERBEROS_SSL"), (false, "SIMPLE")] {
        let (text, lines) = told(has_ticket).await;
        let start = format!("FSCK started by ann (auth:{way}) from /127.0.0.1 for path / at ");
        assert!(text.starts_with(&start), "{text}");
        let line = format!("allowed=true\tugi=ann (auth:{way})\tip=/127.0.0.1\tcmd=fsck\tsrc=/\t");
        assert!(lines.contains(&line), "{lines}");
    }
}
