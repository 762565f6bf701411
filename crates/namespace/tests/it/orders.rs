//! What operators order for the whole file system.

use crate::support::{Fs, user};
use cairn_namespace::ops::orders::{OrderNodes, SetBalancerBandwidth, SetSafeMode};
use cairn_namespace::orders::{self, NodeIntent, NodeName, NodeOrder, Orders};

fn order(host: &str, port: u16, intent: NodeIntent) -> NodeOrder {
    NodeOrder { name: NodeName { host: host.into(), port }, intent }
}

#[test]
fn orders_hold_until_there_are_others() {
    let mut fs = Fs::new();
    assert_eq!(orders::get(&fs.store).unwrap(), Orders::default());
    fs.ok(SetSafeMode { on: true });
    fs.ok(SetBalancerBandwidth { bytes_per_second: 77 });
    let (first, all) = (order("a", 1, NodeIntent::Leave), order("a", 0, NodeIntent::Leave));
    fs.ok(OrderNodes { withdrawn: Vec::new(), ordered: vec![first.clone(), all.clone()] });
    let expected =
        Orders { safe_mode: true, balancer_bandwidth: 77, nodes: vec![first.clone(), all] };
    assert_eq!(orders::get(&fs.store).unwrap(), expected);
    // The last order of a name is in force, and one that is withdrawn is in none.
    let away = order("a", 0, NodeIntent::Away { until_ms: 9 });
    fs.ok(OrderNodes { withdrawn: vec![first.name], ordered: vec![away.clone()] });
    fs.ok(SetSafeMode { on: false });
    let expected = Orders { safe_mode: false, nodes: vec![away], ..expected };
    assert_eq!(orders::get(&fs.store).unwrap(), expected);
}

#[test]
fn only_superusers_give_orders() {
    let mut fs = Fs::new();
    fs.run(user("ann"), SetSafeMode { on: true }).unwrap_err();
    fs.run(user("ann"), SetBalancerBandwidth { bytes_per_second: 1 }).unwrap_err();
    let ordered = vec![order("a", 0, NodeIntent::Leave)];
    fs.run(user("ann"), OrderNodes { withdrawn: Vec::new(), ordered }).unwrap_err();
    assert_eq!(orders::get(&fs.store).unwrap(), Orders::default());
}
