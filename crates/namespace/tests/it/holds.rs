//! What keeps replicas from being deleted, and that somebody watches.

use crate::support::{Fs, user};
use cairn_namespace::holds::{self, Holds, Restored, Upgrade};
use cairn_namespace::ops::holds::{PrepareUpgrade, Release};
use cairn_namespace::ops::watch_events::WatchEvents;
use cairn_namespace::watching;

#[test]
fn each_hold_lasts_until_it_is_ended() {
    let mut fs = Fs::new();
    assert_eq!(holds::get(&fs.store).unwrap(), Holds::default());
    let restored = Some(Restored { sequence: 1, entry_ms: 2, at_ms: 3 });
    holds::put(&mut fs.store, &Holds { restored, upgrade: None }).unwrap();
    fs.ok(PrepareUpgrade { start_ms: 7, sequence: 5 });
    fs.ok(PrepareUpgrade { start_ms: 8, sequence: 6 });
    let upgrade = Some(Upgrade { start_ms: 7, sequence: 5 });
    assert_eq!(holds::get(&fs.store).unwrap(), Holds { upgrade, restored });
    fs.ok(Release { upgrade: false, restored: true });
    assert_eq!(holds::get(&fs.store).unwrap(), Holds { upgrade, restored: None });
    fs.ok(Release { upgrade: true, restored: false });
    fs.ok(Release { upgrade: true, restored: false });
    assert_eq!(holds::get(&fs.store).unwrap(), Holds::default());
}

#[test]
fn only_superusers_hold_deletions_or_watch() {
    let mut fs = Fs::new();
    fs.run(user("ann"), PrepareUpgrade { start_ms: 7, sequence: 5 }).unwrap_err();
    fs.run(user("ann"), Release { upgrade: true, restored: true }).unwrap_err();
    fs.run(user("ann"), WatchEvents {}).unwrap_err();
    assert_eq!(holds::get(&fs.store).unwrap(), Holds::default());
    assert_eq!(watching::asked_ms(&fs.store).unwrap(), None);
    fs.ok(WatchEvents {});
    assert!(watching::asked_ms(&fs.store).unwrap().is_some());
}
