use super::*;
use ReplicaState::*;

const ID: BlockId = BlockId(42);

fn gs(n: u64) -> GenerationStamp {
    GenerationStamp(n)
}

fn replica(state: ReplicaState) -> Replica {
    let mut r = Replica::new(ID, gs(10), if state == Rur { Rbw } else { state }, 100);
    if state == Rur {
        r.init_recovery(gs(10), gs(15)).unwrap();
    }
    r
}

/// One line per operation: `o` accepted, `x` refused, for FINALIZED RBW RWR RUR TEMPORARY.
#[test]
fn operations_by_state() {
    type Op = fn(&mut Replica) -> bool;
    let table: [(&str, &str, Op); 16] = [
        ("create same stamp ", "xxxxx", |r| Replica::check_create(Some(r), gs(0)).is_ok()),
        ("create new stamp  ", "ooooo", |r| Replica::check_create(Some(r), gs(11)) == Ok(true)),
        ("temporary newer   ", "xoxxo", |r| {
            Replica::check_create_temporary(Some(r), gs(11), false, true) == Ok(true)
        }),
        ("transfer newer    ", "ooooo", |r| {
            Replica::check_create_temporary(Some(r), gs(11), true, true) == Ok(true)
        }),
        ("copy, no writer   ", "xoxxx", |r| {
            Replica::check_create_temporary(Some(r), gs(10), false, false) == Ok(true)
        }),
        ("copy, a writer    ", "xxxxx", |r| {
            Replica::check_create_temporary(Some(r), gs(10), false, true).is_ok()
        }),
        ("transfer, no writer", "xoxxx", |r| {
            Replica::check_create_temporary(Some(r), gs(10), true, false) == Ok(true)
        }),
        ("transfer, a writer", "xxxxx", |r| {
            Replica::check_create_temporary(Some(r), gs(10), true, true).is_ok()
        }),
        ("copy as finalized ", "oxxxx", |r| r.check_copy(gs(10)).is_ok()),
        ("append            ", "oxxxx", |r| r.append(gs(10), gs(11), 100).is_ok()),
        ("recover rbw       ", "xoxxx", |r| r.recover_rbw(gs(10), gs(11), (100, 100), 100).is_ok()),
        ("recover append    ", "ooxxx", |r| r.recover_append(gs(10), gs(11), 100).is_ok()),
        ("recover close     ", "ooxxx", |r| r.recover_close(gs(10), gs(11), 100).is_ok()),
        ("convert temporary ", "xxxxo", |r| r.convert_temporary(gs(10), 100).is_ok()),
        ("finalize          ", "xoxxo", |r| r.finalize(gs(10)).is_ok()),
        ("init recovery 16  ", "ooooo", |r| r.init_recovery(gs(10), gs(16)).is_ok()),
    ];
    for (name, want, op) in table {
        let got: String = [Finalized, Rbw, Rwr, Rur, Temporary]
            .map(|s| if op(&mut replica(s)) { 'o' } else { 'x' })
            .iter()
            .collect();
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn readers_see_finalized_and_acknowledged_bytes_only() {
    let mut rbw = Replica::new(ID, gs(10), Rbw, 0);
    rbw.note_received(30);
    rbw.note_on_disk(30);
    rbw.note_acked(20);
    assert_eq!(rbw.visible_len(), Some(20));
    assert_eq!(rbw.check_readable(gs(10)), Ok(20));
    assert!(rbw.check_readable(gs(11)).is_err(), "a stale replica must not be read");
    assert_eq!(replica(Finalized).check_readable(gs(9)), Ok(100));
    for state in [Rwr, Temporary] {
        assert!(replica(state).check_readable(gs(10)).is_err(), "{state}");
    }
    assert_eq!(replica(Rur).visible_len(), Some(100), "recovery does not hide what was readable");
    assert_eq!(
        replica(Rur).report().map(|told| (told.len, told.state)),
        Some((100, Rbw)),
        "nor what is there from a NameNode that has started"
    );
}

#[test]
fn pipeline_recovery_cuts_back_to_the_acknowledged_length() {
    let mut r = Replica::new(ID, gs(10), Rbw, 0);
    r.note_received(50);
    r.note_on_disk(50);
    r.note_acked(40);
    assert!(
        r.clone().recover_rbw(gs(10), gs(11), (41, 60), 50).is_err(),
        "acknowledged bytes missing"
    );
    assert!(
        r.clone().recover_rbw(gs(10), gs(11), (40, 45), 50).is_err(),
        "more than the client sent"
    );
    assert!(r.clone().recover_rbw(gs(11), gs(12), (40, 60), 50).is_err(), "stale replica");
    assert!(r.clone().recover_rbw(gs(8), gs(9), (40, 60), 50).is_err(), "stale client");
    assert!(
        r.clone().recover_rbw(gs(10), gs(11), (40, 60), 39).is_err(),
        "file shorter than acknowledged"
    );
    assert_eq!(r.recover_rbw(gs(10), gs(11), (40, 60), 50), Ok(40));
    assert_eq!((r.gs(), r.received_len(), r.on_disk_len()), (gs(11), 40, 40));
    assert!(r.finalize(gs(10)).is_err(), "the old writer is fenced");
    assert!(r.finalize(gs(11)).is_ok());
}

#[test]
fn close_recovery_wants_a_settled_replica() {
    let mut r = Replica::new(ID, gs(10), Rbw, 0);
    r.note_received(50);
    r.note_on_disk(50);
    r.note_acked(40);
    assert!(matches!(r.recover_close(gs(10), gs(11), 50), Err(ReplicaError::Unsettled { .. })));
    r.note_acked(50);
    assert!(matches!(
        r.recover_close(gs(10), gs(11), 51),
        Err(ReplicaError::LengthOutOfRange { .. })
    ));
    assert_eq!(r.recover_close(gs(10), gs(11), 50), Ok(true));
    assert_eq!((r.state(), r.gs()), (Finalized, gs(11)));
    assert_eq!(
        r.recover_close(gs(10), gs(12), 50),
        Ok(false),
        "already closed: only the stamp moves"
    );
}

#[test]
fn a_unit_that_was_left_behind_tells_what_it_has_and_takes_no_part() {
    let mut unit = Replica::new(BlockId(-15), gs(10), Rbw, 61);
    let info = unit.init_recovery(gs(11), gs(12)).unwrap();
    assert_eq!((info.gs, info.original), (gs(10), Rbw));
    assert_eq!(unit.state(), Rbw);
}

#[test]
fn a_later_recovery_fences_an_earlier_one() {
    let mut r = replica(Rwr);
    let stale = r.init_recovery(gs(11), gs(12)).unwrap();
    assert_eq!((stale.gs, r.state()), (gs(10), Rwr), "it is none of the block's, and not frozen");
    let mut unread = Replica::unread(ID, gs(10));
    assert!(unread.init_recovery(gs(10), gs(12)).is_err(), "it may hold what was acknowledged");
    assert!(r.init_recovery(gs(10), gs(10)).is_err(), "recovery id not newer than the replica");
    let info = r.init_recovery(gs(10), gs(12)).unwrap();
    assert_eq!(info, RecoveryInfo { id: ID, gs: gs(10), len: 100, original: Rwr });
    assert!(matches!(
        r.init_recovery(gs(10), gs(12)),
        Err(ReplicaError::RecoveryInProgress { .. })
    ));
    assert_eq!(r.init_recovery(gs(10), gs(13)).unwrap().original, Rwr);
    assert!(r.check_finish_recovery(gs(12), 100, 60).is_err(), "fenced");
    assert!(r.check_finish_recovery(gs(13), 99, 60).is_err(), "changed since it was asked");
    assert!(r.check_finish_recovery(gs(13), 100, 101).is_err(), "cannot grow");
    assert_eq!(r.check_finish_recovery(gs(13), 100, 60), Ok(()));
    r.finish_recovery(gs(13), 60);
    assert_eq!((r.state(), r.gs(), r.visible_len()), (Finalized, gs(13), Some(60)));
}

/// Its node may have lost power before its end was on the disk.
#[test]
fn a_finalized_replica_that_nobody_has_synced_decides_no_recovery() {
    let mut r = Replica::unsynced(ID, gs(10), 100);
    assert_eq!((r.state(), r.visible_len()), (Finalized, Some(100)));
    let info = r.init_recovery(gs(10), gs(12)).unwrap();
    assert_eq!(info, RecoveryInfo { id: ID, gs: gs(10), len: 100, original: Rwr });
    assert_eq!((r.place(), r.visible_len()), (Finalized, Some(100)), "here it is what it was");
    assert_eq!(r.init_recovery(gs(10), gs(13)).unwrap().original, Rwr);
    r.finish_recovery(gs(13), 90);
    assert_eq!(r.init_recovery(gs(13), gs(14)).unwrap().original, Finalized);
    // A writer knows how long it should be.
    let mut r = Replica::unsynced(ID, gs(10), 100);
    r.append(gs(10), gs(11), 100).unwrap();
    r.finalize(gs(11)).unwrap();
    assert_eq!(r.init_recovery(gs(11), gs(12)).unwrap().original, Finalized);
}

#[test]
fn state_numbers_are_hadoops() {
    for (value, state) in [Finalized, Rbw, Rwr, Rur, Temporary].into_iter().enumerate() {
        assert_eq!(ReplicaState::from_value(value as u64), Some(state));
    }
    assert_eq!(ReplicaState::from_value(5), None);
}
