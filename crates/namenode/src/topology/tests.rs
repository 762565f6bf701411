//! Racks from tables and programs.

use super::*;

fn address(ip: &str, host: &str, xfer_port: u16) -> NodeAddress {
    NodeAddress { ip: ip.into(), host: host.into(), xfer_port, ..NodeAddress::default() }
}

fn with(racks: RackSource) -> Topology {
    Topology::open(&NameNodeConfig { racks, ..NameNodeConfig::default() }, &[]).unwrap()
}

#[tokio::test]
async fn a_port_tells_nodes_of_one_host_apart() {
    let pairs = [("127.0.0.1:1001", "/r1"), ("127.0.0.1", "/r0/"), ("host7", "r7")];
    let pairs = pairs.map(|(host, rack)| (host.to_string(), rack.to_string())).to_vec();
    let topology = with(RackSource::Fixed(pairs));
    assert_eq!(
        topology.rack_of_node(&address("127.0.0.1", "a", 1001)).await.as_deref(),
        Some("/r1")
    );
    assert_eq!(
        topology.rack_of_node(&address("127.0.0.1", "a", 1002)).await.as_deref(),
        Some("/r0")
    );
    assert_eq!(
        topology.rack_of_node(&address("10.0.0.1", "host7", 9)).await.as_deref(),
        Some("/r7")
    );
    assert_eq!(
        topology.rack_of_node(&address("10.0.0.1", "b", 9)).await.as_deref(),
        Some(DEFAULT_RACK)
    );
    assert_eq!(topology.rack_of_client("127.0.0.1").as_deref(), Some("/r0"));
    assert_eq!(topology.rack_of_client("10.0.0.1"), None);
}

#[tokio::test]
async fn a_table_is_read_again_on_refresh() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("racks");
    std::fs::write(&table, "# racks\n10.0.0.1 /a\nbroken line here\n10.0.0.2\t/b\n").unwrap();
    let topology = with(RackSource::Table(table.clone()));
    assert_eq!(topology.rack_of_node(&address("10.0.0.2", "x", 1)).await.as_deref(), Some("/b"));
    std::fs::write(&table, "10.0.0.2 /c\n").unwrap();
    topology.refresh(Hosts::default());
    assert_eq!(topology.rack_of_node(&address("10.0.0.2", "x", 1)).await.as_deref(), Some("/c"));
    assert_eq!(
        topology.rack_of_node(&address("10.0.0.1", "x", 1)).await.as_deref(),
        Some(DEFAULT_RACK)
    );
}

#[tokio::test]
async fn a_program_is_asked_once_for_each_host() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (program, log) = (dir.path().join("rack.sh"), dir.path().join("log"));
    let text = format!(
        "#!/bin/sh\necho \"$1\" >> {}\n[ $1 = 10.0.0.9 ] && exit 1\n\
         [ $1 = 10.0.0.8 ] && echo /a\necho /of-$1\n",
        log.display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let topology = with(RackSource::Script(program));
    for _ in 0..2 {
        assert_eq!(
            topology.rack_of_node(&address("10.0.0.1", "x", 1)).await.as_deref(),
            Some("/of-10.0.0.1")
        );
    }
    assert_eq!(topology.rack_of_node(&address("10.0.0.9", "x", 1)).await, None);
    assert_eq!(
        topology.rack_of_node(&address("10.0.0.8", "x", 1)).await,
        None,
        "it printed two racks"
    );
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "10.0.0.1\n10.0.0.9\n10.0.0.8\n");
}
