use super::*;
use proptest::prelude::*;

const HOUR_MS: i64 = 3_600_000;
const LIVES: Lives = Lives { key_ms: HOUR_MS, token_ms: 2 * HOUR_MS };
const NOW_MS: i64 = 1_796_000_000_000;

fn random(number: u32) -> Random {
    Random { number: 2 * number, secret: [number as u8; SECRET_LEN] }
}

fn begun() -> BlockKeys {
    BlockKeys::begin(LIVES, Form::Legacy, NOW_MS, [random(1), random(2)])
}

fn wanted(block: i64, mode: AccessMode) -> Wanted<'static> {
    let name = &"blk_7";
    Wanted { pool: "BP-1", block, name, mode, storage_types: &[], storage_ids: &[] }
}

fn read_token(keys: &BlockKeys, now_ms: i64) -> TokenProto {
    keys.issue_own("ann", "BP-1", 7, AccessMode::Read, now_ms)
}

fn import(former: Option<&BlockKeys>, keys: &BlockKeys, now_ms: i64) -> BlockKeys {
    BlockKeys::imported(former, &keys.exported(), now_ms).unwrap().unwrap()
}

fn refused(keys: &BlockKeys, token: &TokenProto, wanted: &Wanted<'_>, now_ms: i64) -> String {
    keys.check(token, wanted, now_ms).unwrap_err().0
}

#[test]
fn a_token_is_for_one_block_one_thing_and_some_time() {
    let keys = begun();
    for form in [Form::Legacy, Form::Protobuf] {
        let keys = BlockKeys { form, ..keys.clone() };
        let token = read_token(&keys, NOW_MS);
        let read = wanted(7, AccessMode::Read);
        let id = keys.check(&token, &read, NOW_MS).unwrap();
        assert_eq!((id.user.as_deref(), id.expires_ms), (Some("ann"), NOW_MS + 2 * HOUR_MS));
        keys.check(&token, &read, id.expires_ms).unwrap();
        let told = refused(&keys, &token, &read, id.expires_ms + 1);
        assert_eq!(told, format!("Block token with {id} is expired."));
        let told = refused(&keys, &token, &wanted(8, AccessMode::Read), NOW_MS);
        assert_eq!(told, format!("Block token with {id} doesn't apply to block blk_7"));
        let other = Wanted { pool: "BP-2", ..read };
        assert!(refused(&keys, &token, &other, NOW_MS).contains("doesn't apply"));
        for mode in [AccessMode::Write, AccessMode::Copy, AccessMode::Replace] {
            let told = refused(&keys, &token, &wanted(7, mode), NOW_MS);
            let name = mode.name();
            assert_eq!(told, format!("Block token with {id} doesn't have {name} permission"));
        }
        let mut forged = token.clone();
        forged.password[3] ^= 1;
        let told = refused(&keys, &forged, &read, NOW_MS);
        assert_eq!(told, format!("Block token with {id} doesn't have the correct token password"));
        let forged = BlockTokenId { expires_ms: i64::MAX, ..id.clone() }.encode(form);
        let forged = TokenProto { identifier: forged, ..token.clone() };
        assert!(refused(&keys, &forged, &read, NOW_MS).ends_with("the correct token password"));
        for len in 0..token.identifier.len() {
            let identifier = token.identifier[..len].to_vec();
            let cut = TokenProto { identifier, ..token.clone() };
            assert!(keys.check(&cut, &read, NOW_MS).is_err(), "{len}");
        }
        let stranger = BlockKeys::begin(
            LIVES,
            form,
            NOW_MS,
            [random(1), random(2)].map(|random| Random { secret: [9; SECRET_LEN], ..random }),
        );
        assert!(refused(&stranger, &token, &read, NOW_MS).ends_with("the correct token password"));
        let none = TokenProto::default();
        let told = refused(&keys, &none, &read, NOW_MS);
        assert!(told.starts_with("Unable to de-serialize block token identifier"), "{told}");
    }
}

#[test]
fn writes_go_to_the_storages_that_a_token_names() {
    let keys = begun();
    let id = BlockTokenId {
        pool: Some("BP-1".into()),
        block: 7,
        modes: AccessMode::Write.into(),
        storage_types: vec![1, 1, 2],
        storage_ids: vec!["a".into(), "b".into()],
        ..BlockTokenId::default()
    };
    let token = keys.issue(id, NOW_MS);
    let check = |storage_types: &[i32], ids: &[&str]| {
        let storage_ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
        let write = wanted(7, AccessMode::Write);
        let write = Wanted { storage_types, storage_ids: &storage_ids, ..write };
        keys.check(&token, &write, NOW_MS).map_err(|error| error.0)
    };
    for types in [&[][..], &[1], &[2, 1, 1]] {
        check(types, &["b"]).unwrap();
    }
    check(&[], &["b", "a"]).unwrap();
    assert_eq!(
        check(&[2, 2], &[]).unwrap_err(),
        "Block token with StorageTypes [DISK, DISK, SSD] not valid for access with StorageTypes [SSD, SSD]"
    );
    assert_eq!(
        check(&[1], &["c"]).unwrap_err(),
        "Block token with StorageIDs [a, b] not valid for access with StorageIDs [c]"
    );
}

#[test]
fn a_datanode_that_heard_of_a_roll_once_in_each_interval_takes_every_token() {
    let mut keys = begun();
    let mut datanode = import(None, &keys, NOW_MS);
    for round in 1..20 {
        let now_ms = NOW_MS + i64::from(round) * HOUR_MS;
        let last = read_token(&keys, now_ms - 1);
        keys = keys.rolled(now_ms, random(2 + round));
        let first = read_token(&keys, now_ms);
        assert_ne!(last.identifier, first.identifier);
        let read = wanted(7, AccessMode::Read);
        for token in [&last, &first, &read_token(&datanode, now_ms)] {
            datanode.check(token, &read, now_ms).unwrap();
        }
        datanode = import(Some(&datanode), &keys, now_ms + HOUR_MS / 2);
        datanode.check(&last, &read, now_ms + 2 * HOUR_MS - 1).unwrap();
        assert!(datanode.all.len() <= 6, "{datanode:?}");
    }
}

#[test]
fn tokens_outlive_the_namenode_that_has_issued_them() {
    let keys = begun();
    let datanode = import(None, &keys, NOW_MS);
    let token = read_token(&keys, NOW_MS);
    let read = wanted(7, AccessMode::Read);
    let next = BlockKeys::begin(LIVES, Form::Legacy, NOW_MS + 1, [random(40), random(30)]);
    let datanode = import(Some(&datanode), &next, NOW_MS + 1);
    datanode.check(&token, &read, NOW_MS + 1).unwrap();
    datanode.check(&read_token(&next, NOW_MS + 1), &read, NOW_MS + 1).unwrap();
}

#[test]
fn keys_are_taken_within_limits() {
    let mut sent = begun().exported();
    assert!(BlockKeys::imported(None, &ExportedBlockKeysProto::default(), 0).unwrap().is_none());
    sent.all_keys = (0..=KEYS_MAX as u32)
        .map(|key_id| BlockKeyProto { key_id, ..BlockKeyProto::default() })
        .collect();
    assert!(BlockKeys::imported(None, &sent, 0).is_err());
    sent.all_keys = Vec::new();
    sent.current_key.key_bytes = Some(vec![0; SECRET_MAX + 1]);
    assert!(BlockKeys::imported(None, &sent, 0).is_err());
}

proptest! {
    #[test]
    fn only_what_was_issued_is_taken(identifier: Vec<u8>, password: Vec<u8>) {
        let keys = begun();
        let token = TokenProto { identifier, password, ..TokenProto::default() };
        prop_assert!(keys.check(&token, &wanted(7, AccessMode::Read), NOW_MS).is_err());
    }
}
