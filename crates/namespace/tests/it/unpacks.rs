//! Blocks that leave their containers: for others, where much is dead, or to be plain again.

use crate::packs::{
    POLICY, begin, begun, find, fs, group, pack, packed, refusal, seal, state, waiting, wanted,
    write,
};
use crate::support::{Fs, MIB, root, said};
use cairn_namespace::container::ContainerState;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::convert::Convert;
use cairn_namespace::ops::group::Dissolve;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::pack::{AbandonPack, EndPack, may_be_packed};
use cairn_namespace::ops::repack::Repack;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::ops::unpack::{BeginUnpack, Unpack};
use cairn_namespace::{Block, Conversion, Outcome, PackedIn, Settings, query};
use cairn_stripe::{BlockId, Redundancy};

fn found_anew(fs: &Fs, blocks: &[Block]) -> Vec<Block> {
    blocks.iter().map(|block| find(fs, block.id).unwrap()).collect()
}

fn asked(fs: &Fs) -> Vec<BlockId> {
    query::unpacking_after(&fs.store, None, 100).unwrap()
}

/// What lives goes into another container, in which it is from the moment on in which it is packed there.
#[test]
fn what_lives_in_a_container_goes_into_another() {
    let mut fs = fs();
    let blocks = ["/c/a", "/c/b", "/c/d"].map(|path| write(&mut fs, path, 1000));
    let ((old, _), handle) = packed(&mut fs, &blocks);
    fs.delete("/c/a");
    assert_eq!(fs.ok(Repack { container: old }), Outcome::Flag(true));
    assert_eq!(state(&fs, old), Some(ContainerState::Emptying { next: None }));
    let left = found_anew(&fs, &blocks[1..]);
    assert_eq!(waiting(&fs), [left[0].id, left[1].id]);
    assert_eq!(wanted(&fs, left[0].id), Redundancy::Replicated(0), "it is where it was");
    let new = begun(&mut fs, &left);
    assert!(waiting(&fs).is_empty());
    // A start gives up who writes it.
    assert_eq!(fs.ok(AbandonPack { container: new.0 }), Outcome::Flag(true));
    assert_eq!(waiting(&fs).len(), 2, "they wait for another");
    let new = begun(&mut fs, &left);
    fs.ok(seal(new, &left, &[]));
    group(&mut fs, &[new.0]);
    refusal(fs.ok(EndPack { container: old }));
    assert_eq!(pack(&mut fs, new), Outcome::Flag(true));
    for (slot, block) in (0..).zip(&left) {
        let (container, offset) = (new.0, u64::from(slot) * 1024);
        let packed = Some(PackedIn { container, slot, offset });
        assert_eq!(find(&fs, block.id), Some(Block { packed, ..block.clone() }));
    }
    assert_eq!(query::totals(&fs.store).unwrap().packed, 2);
    let of = query::container(&fs.store, old).unwrap().unwrap();
    assert_eq!((of.live, of.live_len, of.moved_to), (0, 0, vec![new.0]));
    assert_eq!(fs.ok(EndPack { container: old }), Outcome::Done);
    fs.ok(Dissolve { handle });
    assert_eq!(find(&fs, old), None);
    fs.delete("/c/b");
    let of = query::container(&fs.store, new.0).unwrap().unwrap();
    assert_eq!((of.live, of.live_len), (1, 1000));
}

/// `Pack` compares where a block is: the same bytes in another place are another matter.
#[test]
fn a_late_pack_finds_a_block_only_where_it_was() {
    let mut fs = fs();
    let blocks = ["/c/a", "/c/b", "/c/d"].map(|path| write(&mut fs, path, 1000));
    let ((old, _), _) = packed(&mut fs, &blocks);
    fs.ok(Repack { container: old });
    let left = found_anew(&fs, &blocks);
    let new = begun(&mut fs, &left);
    fs.ok(seal(new, &left, &[]));
    group(&mut fs, &[new.0]);
    // One becomes plain, one is to be, one goes.
    fs.ok(Unpack { blocks: vec![blocks[0].id] });
    fs.ok(BeginUnpack { blocks: vec![blocks[1].id], waits: false });
    fs.delete("/c/d");
    assert_eq!(pack(&mut fs, new), Outcome::Flag(true));
    assert_eq!(find(&fs, blocks[0].id).unwrap().packed, None);
    assert_eq!(find(&fs, blocks[1].id).unwrap().packed.unwrap().container, old);
    assert!(query::pack_slots(&fs.store, new.0, 0, 9).unwrap().is_empty());
    assert_eq!(fs.ok(EndPack { container: new.0 }), Outcome::Done);
    assert_eq!(waiting(&fs), [blocks[0].id], "what is plain waits as it did before");
    fs.ok(Unpack { blocks: vec![blocks[1].id] });
    assert_eq!(waiting(&fs), [blocks[0].id], "what was to be plain stays so");
    assert!(asked(&fs).is_empty());
    assert_eq!(fs.ok(EndPack { container: old }), Outcome::Done);
}

#[test]
fn many_blocks_leave_a_container_step_by_step() {
    let mut fs = fs();
    let blocks: Vec<_> = (0..1003).map(|n| write(&mut fs, &format!("/c/{n}"), 10)).collect();
    let (begun, _) = packed(&mut fs, &blocks);
    let container = begun.0;
    assert_eq!(fs.ok(Repack { container }), Outcome::Flag(false));
    assert_eq!(state(&fs, container), Some(ContainerState::Emptying { next: Some(1000) }));
    assert_eq!(pack(&mut fs, begun), Outcome::Flag(true), "all is packed that can be");
    assert_eq!(fs.ok(Repack { container }), Outcome::Flag(true));
    let waits = query::waiting_to_be_packed(&fs.store, u64::MAX, None, 2000).unwrap();
    assert_eq!(waits.len(), 1003);
    assert_eq!(fs.ok(Repack { container }), Outcome::Flag(true), "again is the same");
}

#[test]
fn what_a_snapshot_brings_back_leaves_its_container_too() {
    let mut fs = fs();
    fs.ok(AllowSnapshot { path: "/c".into() });
    let blocks = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 1000));
    fs.ok(CreateSnapshot { path: "/c".into(), name: "s".into() });
    let ((container, _), _) = packed(&mut fs, &blocks);
    fs.ok(Repack { container });
    fs.delete("/c/a");
    assert_eq!(waiting(&fs).len(), 2);
    let left = found_anew(&fs, &blocks);
    let new = begun(&mut fs, &left);
    fs.ok(seal(new, &left, &[]));
    group(&mut fs, &[new.0]);
    pack(&mut fs, new);
    assert_eq!(find(&fs, blocks[0].id).unwrap().packed.unwrap().container, new.0);
    assert_eq!(fs.ok(EndPack { container }), Outcome::Done);
}

#[test]
fn a_packed_block_is_cut_off_when_it_is_plain() {
    let mut fs = fs();
    let blocks = [write(&mut fs, "/c/a", 1000)];
    packed(&mut fs, &blocks);
    let truncate = |new_len| Truncate {
        path: "/c/a".into(),
        new_len,
        holder: "client".into(),
        client_machine: "host".into(),
    };
    assert_eq!(said(&fs.err(truncate(500))).0, "RetriableException");
    let id = blocks[0].id;
    assert_eq!(query::packed_cut(&fs.store, "/c/a", 500), Ok(Some(id)));
    assert_eq!(query::packed_cut(&fs.store, "/c/a", 1000), Ok(None));
    fs.ok(BeginUnpack { blocks: vec![id, BlockId(7)], waits: false });
    assert_eq!(asked(&fs), [id]);
    assert_eq!(said(&fs.err(truncate(500))).0, "RetriableException", "it is packed still");
    fs.ok(Unpack { blocks: vec![id] });
    assert!(asked(&fs).is_empty());
    assert_eq!(fs.ok(truncate(500)), Outcome::Recovery { closed: false });
}

#[test]
fn to_nothing_a_packed_block_is_cut_off_at_once() {
    let mut fs = fs();
    let blocks = [write(&mut fs, "/c/a", 1000)];
    packed(&mut fs, &blocks);
    fs.ok(BeginUnpack { blocks: vec![blocks[0].id], waits: false });
    let (path, holder, client_machine) = ("/c/a".into(), "client".into(), "host".into());
    let done = fs.ok(Truncate { path, new_len: 0, holder, client_machine });
    assert_eq!(done, Outcome::Removed { done: true, more: false });
    assert_eq!(find(&fs, blocks[0].id), None);
    assert!(asked(&fs).is_empty());
}

#[test]
fn a_file_that_is_not_to_be_packed_any_more_is_unpacked() {
    let mut fs = fs();
    let quota = |space_max| SetQuota { path: "/c".into(), names_max: QuotaChange::Keep, space_max };
    fs.ok(quota(QuotaChange::Set { max: 10 * MIB * 128 }));
    let blocks = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 3000));
    packed(&mut fs, &blocks);
    let counted = |fs: &Fs| query::quota_usage(&fs.store, &root(), "/c").unwrap().space;
    assert_eq!(counted(&fs), 10_000);
    let file = fs.status("/c/a").unwrap().inode.id;
    let convert = |policy: &str| Convert { files: vec![file], policy: policy.into() };
    assert_eq!(fs.ok(convert("replication")), Outcome::Converted(vec![Conversion::Done]));
    assert_eq!(asked(&fs), [blocks[0].id]);
    assert_eq!(wanted(&fs, blocks[0].id), Redundancy::Replicated(0), "it is packed so far");
    assert_eq!(counted(&fs), 14_000);
    // Back again before that is done, nothing is.
    let back = fs.ok(convert("RS-3-2-contiguous"));
    assert_eq!(back, Outcome::Converted(vec![Conversion::Done]));
    assert_eq!((asked(&fs), counted(&fs)), (vec![], 10_000));
    fs.ok(convert("replication"));
    fs.ok(Unpack { blocks: vec![blocks[0].id] });
    assert_eq!(wanted(&fs, blocks[0].id), Redundancy::Replicated(3));
    assert_eq!(counted(&fs), 14_000);
    // More copies than a policy has are asked for of what is read often.
    fs.ok(SetReplication { path: "/c/b".into(), replication: 3 });
    assert!(asked(&fs).is_empty());
    fs.ok(SetReplication { path: "/c/b".into(), replication: 5 });
    assert_eq!(asked(&fs), [blocks[1].id]);
    fs.ok(Unpack { blocks: vec![blocks[1].id] });
    assert_eq!(wanted(&fs, blocks[1].id), Redundancy::Replicated(5));
}

/// One of which more copies are asked for would have any container refused that it was chosen for.
#[test]
fn what_may_not_be_packed_is_not_chosen() {
    let mut fs = fs();
    let blocks = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 1000));
    let members = begin(&blocks).blocks;
    let may = |fs: &Fs, n: usize| may_be_packed(&fs.store, &members[n], POLICY).unwrap();
    assert!(may(&fs, 0) && may(&fs, 1));
    fs.ok(SetReplication { path: "/c/a".into(), replication: 5 });
    assert_eq!([may(&fs, 0), may(&fs, 1)], [false, true]);
    begun(&mut fs, &blocks[1..]);
    assert!(!may(&fs, 1), "another container has taken it");
}

#[test]
fn files_from_before_packing_was_switched_on_wait_when_they_are_converted_to_what_they_are() {
    let mut fs = Fs::with(Settings { block_size_min: 0, ..Settings::default() });
    fs.mkdirs("/c");
    fs.set_policy("/c", "RS-3-2-contiguous");
    let block = write(&mut fs, "/c/a", 1000);
    let file = fs.status("/c/a").unwrap().inode.id;
    let on = Settings { block_size_min: 0, packs: true, ..Settings::default() };
    fs.ok(Configure { settings: on.into() });
    assert!(waiting(&fs).is_empty());
    let convert = Convert { files: vec![file], policy: "RS-3-2-contiguous".into() };
    assert_eq!(fs.ok(convert), Outcome::Converted(vec![Conversion::Same]));
    assert_eq!(waiting(&fs), [block.id]);
}

/// A block that waits for another container is not forgotten when its file goes on behind it.
#[test]
fn a_container_is_emptied_of_blocks_whose_files_go_on() {
    let mut fs = fs();
    let blocks = [write(&mut fs, "/c/a", 1000)];
    let ((container, _), _) = packed(&mut fs, &blocks);
    fs.ok(Repack { container });
    let append = Append {
        path: "/c/a".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas: LastBlocks { seen: None, ..LastBlocks::default() },
    };
    fs.ok(append);
    assert_eq!(waiting(&fs), [blocks[0].id]);
    let member = begin(&found_anew(&fs, &blocks)).blocks[0];
    assert_eq!(may_be_packed(&fs.store, &member, POLICY), Ok(false), "while it is written");
    fs.complete("/c/a", None);
    assert_eq!(may_be_packed(&fs.store, &member, POLICY), Ok(true));
}
