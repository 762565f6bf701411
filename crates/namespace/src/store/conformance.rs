//! What every store backend must do. Each backend's tests call [`check`] with an empty store.

use super::state::{StoreRead, StoreTxn};
use super::table::Table;
use std::ops::ControlFlow;

/// Runs the whole suite on `store`, which must be empty. Panics at the first thing that is wrong.
pub fn check(store: &mut dyn StoreTxn) {
    points(store);
    tables_are_apart(store);
    scans_are_ordered(store);
    scans_stop(store);
    large_values(store);
}

/// Keys and values of tables, for comparing stores.
pub type Records = Vec<(Table, Vec<u8>, Vec<u8>)>;

/// All that a store has, but for outcomes of calls: they come to it with checkpoints, whenever those are. Panics if it
/// cannot be read.
pub fn dump(store: &dyn StoreRead) -> Records {
    let mut all = Vec::new();
    for table in Table::ALL.iter().filter(|table| **table != Table::Outcome) {
        let mut visit = |key: &[u8], value: &[u8]| {
            all.push((*table, key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        store.scan(*table, &[], &[], &mut visit).expect("a scan succeeds");
    }
    all
}

/// The keys in a range as text.
fn keys(store: &dyn StoreTxn, from: &[u8], to: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    store
        .scan(Table::Child, from, to, &mut |key, _| {
            found.push(key.to_vec());
            ControlFlow::Continue(())
        })
        .expect("a scan succeeds");
    found
}

fn points(store: &mut dyn StoreTxn) {
    assert_eq!(store.get(Table::Inode, b"k").unwrap(), None);
    store.put(Table::Inode, b"k", b"1").unwrap();
    assert_eq!(store.get(Table::Inode, b"k").unwrap().as_deref(), Some(&b"1"[..]));
    store.put(Table::Inode, b"k", b"").unwrap();
    assert_eq!(store.get(Table::Inode, b"k").unwrap().as_deref(), Some(&b""[..]));
    store.delete(Table::Inode, b"k").unwrap();
    store.delete(Table::Inode, b"k").unwrap();
    assert_eq!(store.get(Table::Inode, b"k").unwrap(), None);
}

fn tables_are_apart(store: &mut dyn StoreTxn) {
    for table in Table::ALL {
        store.put(*table, b"same", table.name().as_bytes()).unwrap();
    }
    for table in Table::ALL {
        let value = store.get(*table, b"same").unwrap();
        assert_eq!(value.as_deref(), Some(table.name().as_bytes()));
        store.delete(*table, b"same").unwrap();
    }
}

fn scans_are_ordered(store: &mut dyn StoreTxn) {
    let sorted: [&[u8]; 6] = [&[0], &[0, 0], &[0, 1], &[1], &[0x80, 7], &[0xff, 0xff]];
    for key in sorted.iter().rev() {
        store.put(Table::Child, key, b"v").unwrap();
    }
    assert_eq!(keys(store, b"", b""), sorted);
    assert_eq!(keys(store, &[0, 0], &[0x80]), sorted[1..4]);
    assert_eq!(keys(store, &[0, 0, 0], &[1]), sorted[2..3]);
    assert_eq!(keys(store, &[2], &[2]), Vec::<Vec<u8>>::new());
    assert_eq!(keys(store, &[3], &[2]), Vec::<Vec<u8>>::new());
    store.delete(Table::Child, &[1]).unwrap();
    assert_eq!(keys(store, &[1], b""), sorted[4..]);
}

fn scans_stop(store: &mut dyn StoreTxn) {
    let mut seen = 0;
    store
        .scan(Table::Child, b"", b"", &mut |_, _| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(seen, 2);
}

fn large_values(store: &mut dyn StoreTxn) {
    let value: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
    store.put(Table::Block, b"large", &value).unwrap();
    assert_eq!(store.get(Table::Block, b"large").unwrap(), Some(value));
    store.delete(Table::Block, b"large").unwrap();
}
