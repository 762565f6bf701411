//! Lists and files of hosts: who fits, and what is wanted of whom.

use super::*;

fn address(ip: &str, host: &str, xfer_port: u16) -> NodeAddress {
    NodeAddress { ip: ip.into(), host: host.into(), xfer_port, ..NodeAddress::default() }
}

fn combined(text: &str) -> Result<Hosts, TopologyError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts.json");
    std::fs::write(&path, text).unwrap();
    let hosts_format = HostsFormat::Combined;
    let config =
        NameNodeConfig { hosts_file: Some(path), hosts_format, ..NameNodeConfig::default() };
    Hosts::read(&config, &[])
}

#[test]
fn lists_name_hosts_with_or_without_port() {
    let dir = tempfile::tempdir().unwrap();
    let (hosts, exclude) = (dir.path().join("hosts"), dir.path().join("exclude"));
    std::fs::write(&hosts, "10.0.0.1:1001 host2.invalid # others\n::1 [::2]:7\nlocalhost:5\n")
        .unwrap();
    std::fs::write(&exclude, "host2.invalid\n").unwrap();
    let config = NameNodeConfig {
        hosts_file: Some(hosts.clone()),
        hosts_exclude_file: Some(exclude),
        ..NameNodeConfig::default()
    };
    let read = Hosts::read(&config, &[]).unwrap();
    for (ip, name, port, included) in [
        ("10.0.0.1", "x", 1001, true),
        ("10.0.0.1", "x", 1002, false),
        ("10.0.0.5", "host2.invalid", 7, true),
        ("10.0.0.5", "others", 7, false),
        ("::1", "x", 9, true),
        ("::2", "x", 7, true),
        ("::2", "x", 8, false),
        ("127.0.0.1", "x", 5, true),
        ("127.0.0.1", "x", 6, false),
    ] {
        assert_eq!(read.is_included(&address(ip, name, port)), included, "{ip} {name} {port}");
    }
    let excluded = address("10.0.0.5", "host2.invalid", 7);
    assert_eq!(read.intent(&excluded), AdminIntent::Decommission);
    assert_eq!(read.intent(&address("10.0.0.1", "x", 1001)), AdminIntent::InService);
    let unseen = read.unseen(&[address("10.0.0.1", "x", 1001), address("::1", "y", 9)]);
    let names: Vec<String> = unseen.iter().map(|(node, _)| node.to_string()).collect();
    assert!(names.contains(&"::2:7".to_string()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("10.0.0.1")), "{names:?}");
}

#[test]
fn one_file_says_all() {
    let array = r#"[
        {"hostName": "10.0.0.1", "upgradeDomain": "ud0"},
        {"hostName": "10.0.0.2", "port": 7, "adminState": "DECOMMISSIONED"},
        {"hostName": "10.0.0.2", "port": 8, "adminState": "NORMAL", "upgradeDomain": "ud1"},
        {"hostName": "10.0.0.3", "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 77}
    ]"#;
    let legacy = array.trim().trim_matches(['[', ']']).replace("},", "}");
    for text in [array.to_string(), legacy] {
        let read = combined(&text).unwrap();
        for (ip, port, included, intent, domain) in [
            ("10.0.0.1", 1, true, AdminIntent::InService, Some("ud0")),
            ("10.0.0.2", 7, true, AdminIntent::Decommission, None),
            ("10.0.0.2", 8, true, AdminIntent::InService, Some("ud1")),
            ("10.0.0.2", 9, false, AdminIntent::InService, None),
            ("10.0.0.3", 1, true, AdminIntent::Maintenance { until_ms: 77 }, None),
            ("10.0.0.4", 1, false, AdminIntent::InService, None),
        ] {
            let node = address(ip, "x", port);
            assert_eq!(read.is_included(&node), included, "{node}");
            assert_eq!(read.intent(&node), intent, "{node}");
            assert_eq!(read.upgrade_domain(&node).as_deref(), domain, "{node}");
        }
    }
}

#[test]
fn a_file_without_anyone_in_service_lets_everyone_in() {
    let read = combined(r#"[{"hostName": "10.0.0.2", "adminState": "DECOMMISSIONED"}]"#).unwrap();
    assert!(read.is_included(&address("10.0.0.9", "x", 1)));
    assert_eq!(read.intent(&address("10.0.0.2", "x", 1)), AdminIntent::Decommission);
    assert!(combined("").unwrap().is_included(&address("10.0.0.9", "x", 1)));
    let missing = NameNodeConfig {
        hosts_file: Some("/nonexistent/hosts.json".into()),
        hosts_format: HostsFormat::Combined,
        ..NameNodeConfig::default()
    };
    assert!(Hosts::read(&missing, &[]).unwrap().is_included(&address("10.0.0.9", "x", 1)));
}

#[test]
fn a_file_that_makes_no_sense_says_where() {
    for (text, reason) in [
        ("[{\"hostName\": \"a\"", "EOF"),
        ("[{\"port\": 1}]", "no hostName"),
        ("{\"hostName\": \"10.0.0.1\", \"port\": 70000}", "70000 is no port"),
        ("[{\"hostName\": \"10.0.0.1\", \"adminState\": \"GONE\"}]", "GONE is no adminState"),
        ("[{\"hostName\": \"10.0.0.1\", \"colour\": 1}]", "colour is no property"),
        ("[7]", "7 is not an object"),
        ("10.0.0.1\n", "JSON"),
    ] {
        let error = combined(text).unwrap_err().to_string();
        assert!(error.contains("hosts.json"), "{error}");
        assert!(reason == "JSON" || error.contains(reason), "{error}");
    }
}

#[test]
fn what_operators_say_by_name_goes_before_and_outlives_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let exclude = dir.path().join("exclude");
    std::fs::write(&exclude, "dn3.invalid\n").unwrap();
    let config = NameNodeConfig {
        name_dir: dir.path().to_path_buf(),
        hosts_exclude_file: Some(exclude.clone()),
        ..NameNodeConfig::default()
    };
    let nodes = [
        address("10.0.0.1", "dn1.invalid", 9866),
        address("10.0.0.1", "dn1.invalid", 9966),
        address("10.0.0.2", "dn2.invalid", 9866),
        address("10.0.0.3", "dn3.invalid", 9866),
    ];
    let set = |names: &[&str], intent| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let change = own::change(&Hosts::read(&config, &[]).unwrap(), &nodes, &names, intent)?;
        own::write(dir.path(), &change).map(|()| change.meant).map_err(own::StateError::from)
    };
    let intents = || {
        let hosts = Hosts::read(&config, &[]).unwrap();
        nodes.each_ref().map(|node| hosts.intent(node))
    };
    let (serve, leave) = (AdminIntent::InService, AdminIntent::Decommission);
    assert_eq!(intents(), [serve, serve, serve, leave]);
    assert_eq!(set(&["dn1.invalid"], leave).unwrap().len(), 2);
    assert_eq!(intents(), [leave, leave, serve, leave]);
    let away = AdminIntent::Maintenance { until_ms: 77 };
    assert_eq!(set(&["10.0.0.1:9966", "dn2.invalid:9866"], away).unwrap().len(), 2);
    assert_eq!(intents(), [leave, away, away, leave]);
    set(&["10.0.0.1", "10.0.0.2"], serve).unwrap();
    assert_eq!(intents(), [serve, serve, serve, leave]);
    for name in ["dn4.invalid", "dn1.invalid:1"] {
        assert!(matches!(set(&[name], leave), Err(own::StateError::Unknown(_))), "{name}");
    }
    let listed = set(&["dn3.invalid"], serve);
    assert!(matches!(listed, Err(own::StateError::Listed(_))), "{listed:?}");
    std::fs::write(dir.path().join(OWN_FILE), "[{]").unwrap();
    assert!(Hosts::read(&config, &[]).is_err());
}
