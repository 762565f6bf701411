use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;

/// What a NameNode of Hadoop 3.5.0 has written before it was killed: `interop/moving` made it.
const GOLDEN: &[u8] = include_bytes!("../../tests/golden/hadoop-3.5.0-log.edits");

fn frame(code: u8, id: u64, fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![code];
    bytes.extend((12 + fields.len() as u32).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend(fields);
    let mut crc = Crc::new();
    crc.update(&bytes);
    bytes.extend(crc.sum().to_be_bytes());
    bytes
}

fn segment(frames: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
    let mut bytes = NEWEST.to_be_bytes().to_vec();
    bytes.extend([0; 4]);
    frames.iter().for_each(|frame| bytes.extend(frame));
    bytes.extend(end);
    bytes
}

/// Transactions of a file, and whether it is torn.
fn read(bytes: &[u8]) -> Result<(Vec<Transaction>, bool), EditsError> {
    let Some(mut segment) = Segment::open(Cursor::new(bytes))? else { return Ok((vec![], false)) };
    let mut found = Vec::new();
    while let Some(transaction) = segment.transaction()? {
        found.push(transaction);
    }
    Ok((found, segment.is_torn()))
}

fn ids(bytes: &[u8]) -> (Vec<u64>, bool) {
    let (found, is_torn) = read(bytes).unwrap();
    (found.iter().map(|of| of.id).collect(), is_torn)
}

#[test]
fn what_hadoop_has_written_is_read_to_the_end() {
    let (found, is_torn) = read(GOLDEN).unwrap();
    assert!(!is_torn && found.len() > 300, "{}", found.len());
    let first = found[0].id;
    let numbers: Vec<u64> = found.iter().map(|of| of.id).collect();
    assert_eq!(numbers, (first..first + found.len() as u64).collect::<Vec<_>>());
    // Every kind of operation that the scene has called for.
    let named = |operation: &Operation| {
        let text = format!("{operation:?}");
        text.split([' ', '(']).next().unwrap_or_default().to_string()
    };
    let kinds: BTreeSet<String> = found.iter().map(|of| named(&of.operation)).collect();
    let wanted = "Add AddBlock AddCacheDirective AddCachePool AddEcPolicy AllocateBlock AllowSnapshot Append Boundary \
                  Close Concat CreateSnapshot Delete DeleteSnapshot DisableEcPolicy DisallowSnapshot EnableEcPolicy Mkdir \
                  ModifyCacheDirective ModifyCachePool ReassignLease RemoveCacheDirective RemoveCachePool RemoveEcPolicy \
                  RemoveXAttrs Rename RenameOld RenameSnapshot SetAcl SetOwner SetPermissions SetQuota SetReplication \
                  SetStoragePolicy SetTypeQuota SetXAttrs Stamp Times Truncate UpdateBlocks";
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        wanted.split_whitespace().collect::<Vec<_>>()
    );
    let has = |wanted: &Operation| found.iter().any(|of| of.operation == *wanted);
    let (from, to) = ("/log/open".to_string(), "/log/open-renamed".to_string());
    assert!(found.iter().any(|of| match &of.operation {
        Operation::RenameOld { from: one, to: other, .. } => (one, other) == (&from, &to),
        _ => false,
    }));
    assert!(has(&Operation::SetPermissions { path: "/log/files".into(), mode: 0o1770 }));
    assert!(has(&Operation::SetQuota { path: "/log/quota".into(), names: 50, space: 1 << 30 }));
    assert!(has(&Operation::EnableEcPolicy("RS-4-2-64k".into())));
    let file = found.iter().find_map(|of| match &of.operation {
        Operation::Add(file) if file.path == "/log/files/\u{1f600}" => Some(file),
        _ => None,
    });
    let file = file.unwrap();
    assert_eq!((file.replication, file.block_len, file.ec_policy), (2, 1 << 20, 0));
    assert!(file.client.starts_with("DFSClient_") && file.owned.mode == 0o644, "{file:?}");
}

#[test]
fn a_file_that_was_not_begun_has_nothing() {
    for bytes in [&[][..], &[0xff; 9], &[0xff, 0xff]] {
        assert!(Segment::open(Cursor::new(bytes)).unwrap().is_none(), "{bytes:?}");
    }
    let mut old = segment(&[], &[]);
    old[..4].copy_from_slice(&(-63_i32).to_be_bytes());
    assert!(matches!(read(&old), Err(EditsError::Version(-63))));
}

#[test]
fn what_was_never_whole_is_left_out() {
    let whole = [frame(24, 5, &[]), frame(31, 6, &9_u64.to_be_bytes())];
    let next = frame(31, 7, &10_u64.to_be_bytes());
    for end in 0..next.len() {
        for filling in [&[][..], &[0xff; 40], &[0; 40]] {
            let torn = [&next[..end], filling].concat();
            let (found, is_torn) = ids(&segment(&whole, &torn));
            assert_eq!(found, [5, 6]);
            assert_eq!(is_torn, end > 0 || filling.first() == Some(&0), "{end} {filling:?}");
        }
    }
}

#[test]
fn damage_with_something_behind_it_is_no_end() {
    let mut broken = frame(31, 6, &9_u64.to_be_bytes());
    broken[15] ^= 1;
    let (first, last) = (frame(24, 5, &[]), frame(31, 7, &10_u64.to_be_bytes()));
    let bytes = segment(&[first.clone(), broken, last], &[0xff; 9]);
    match read(&bytes) {
        Err(EditsError::Damaged { at, after, .. }) => assert_eq!((at, after), (25, 5)),
        other => panic!("{other:?}"),
    }
    // As if somebody had gone on behind the filling.
    let filled = [vec![0xff; 3], frame(31, 7, &10_u64.to_be_bytes())].concat();
    assert!(matches!(read(&segment(&[first], &filled)), Err(EditsError::Damaged { .. })));
}

#[test]
fn operations_that_are_not_known_are_named() {
    for code in [5, 6, 11, 12, 53, 127] {
        let found = read(&segment(&[frame(code, 8, &[])], &[]));
        let is_named =
            matches!(found, Err(EditsError::Unknown { transaction: 8, code: of }) if of == code);
        assert!(is_named, "{code}: {found:?}");
    }
    let more = read(&segment(&[frame(31, 8, &[0; 9])], &[]));
    let text = more.unwrap_err().to_string();
    assert!(text.contains("transaction 8, OP_SET_GENSTAMP_V2"), "{text}");
}

proptest! {
    #[test]
    fn whatever_stands_there_is_read_or_refused(code in 0..60_u8, fields in any::<Vec<u8>>()) {
        let _ = read(&segment(&[frame(code, 1, &fields)], &[]));
        let _ = read(&segment(&[], &fields));
    }

    #[test]
    fn damage_never_changes_an_operation(at in 8..GOLDEN.len(), bit in 0..8_u32, end in 0..GOLDEN.len()) {
        let whole = read(GOLDEN).unwrap().0;
        let mut damaged = GOLDEN.to_vec();
        damaged[at] ^= 1 << bit;
        if let Ok((found, _)) = read(&damaged) {
            prop_assert!(whole.starts_with(&found));
        }
        let (found, _) = read(&GOLDEN[..end]).unwrap();
        prop_assert!(whole.starts_with(&found));
    }
}
