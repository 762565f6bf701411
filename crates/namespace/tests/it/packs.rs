//! Containers: what is packed, what changes for a packed block's file, and what a container's end asks for.

use crate::support::{Fs, MIB, add_block, complete, root};
use cairn_namespace::container::{ContainerState, PackedBlock};
use cairn_namespace::group::{ChecksumShape, ParityRecord};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::group::{
    BeginDissolve, BeginEncode, Dissolve, Form, MemberSum, NewMember,
};
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::pack::{AbandonPack, BeginPack, EndPack, Pack, SealPack};
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::ops::unpack::Unpack;
use cairn_namespace::{Block, BlockRef, Effect, Outcome, PackedIn, Settings, query};
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, Redundancy};

/// The number of `RS-3-2-contiguous`.
pub(crate) const POLICY: PolicyId = PolicyId(34);
pub(crate) const SHAPE: ChecksumShape = ChecksumShape { kind: 2, bytes_per_checksum: 512 };

pub(crate) type Begun = (BlockId, GenerationStamp);

pub(crate) fn fs() -> Fs {
    let mut fs = Fs::with(Settings { block_size_min: 0, packs: true, ..Settings::default() });
    fs.mkdirs("/c");
    fs.set_policy("/c", "RS-3-2-contiguous");
    fs
}

/// A closed file of one block, of which DataNodes have told the CRC.
pub(crate) fn write(fs: &mut Fs, path: &str, len: u64) -> Block {
    fs.create(path);
    let Outcome::BlockAdded { block, .. } = fs.ok(add_block(path, None)) else { panic!() };
    let last = Some(BlockRef { len, ..block.reference() });
    let last_crcs = vec![Some(5)];
    assert_eq!(fs.ok(Complete { last_crcs, ..complete(path, last) }), Outcome::Flag(true));
    find(fs, block.id).unwrap()
}

pub(crate) fn find(fs: &Fs, id: BlockId) -> Option<Block> {
    query::get_block(&fs.store, id).unwrap().map(|info| info.block)
}

pub(crate) fn wanted(fs: &Fs, id: BlockId) -> Redundancy {
    query::get_block(&fs.store, id).unwrap().unwrap().redundancy
}

fn space(fs: &Fs, path: &str) -> u64 {
    query::content_summary(&fs.store, &root(), path).unwrap().space
}

pub(crate) fn waiting(fs: &Fs) -> Vec<BlockId> {
    let found = query::waiting_to_be_packed(&fs.store, u64::MAX, None, 100).unwrap();
    found.into_iter().map(|waiting| waiting.id).collect()
}

pub(crate) fn begin(blocks: &[Block]) -> BeginPack {
    let found = |block: &Block| PackedBlock {
        id: block.id,
        gs: block.gs,
        len: block.len,
        crc32c: 5,
        from: block.packed.map(|at| at.container),
    };
    BeginPack { policy: POLICY, storage_policy: 0, blocks: blocks.iter().map(found).collect() }
}

pub(crate) fn begun(fs: &mut Fs, blocks: &[Block]) -> Begun {
    match fs.ok(begin(blocks)) {
        Outcome::EncodeBegun { handle, gs } => (handle, gs),
        other => panic!("{other:?}"),
    }
}

/// What a DataNode says that has packed these, but for some slots.
pub(crate) fn seal((container, gs): Begun, blocks: &[Block], left_out: &[u32]) -> SealPack {
    let mut index = PackIndex::new((container, gs), 2, 512).unwrap();
    for (slot, block) in (0..).zip(blocks).filter(|(slot, _)| !left_out.contains(slot)) {
        index.push(slot, (block.id, block.gs), (block.len as u32, 5)).unwrap();
    }
    SealPack {
        container,
        gs,
        len: index.container_len(),
        crc32c: 9,
        left_out: left_out.to_vec(),
        crcs: vec![5; index.packed().len()],
        checksum: SHAPE,
    }
}

pub(crate) fn group(fs: &mut Fs, containers: &[BlockId]) -> BlockId {
    let member = |id: &BlockId| {
        let Block { id, gs, len, .. } = find(fs, *id).unwrap();
        NewMember { id, gs, len, crc32c: 9 }
    };
    let members: Vec<_> = containers.iter().map(member).collect();
    let sums = 0..members.len() as u8;
    let begin = BeginEncode { policy: POLICY, members, supersedes: Vec::new() };
    let Outcome::EncodeBegun { handle, gs } = fs.ok(begin) else { panic!() };
    let form = Form {
        handle,
        gs,
        members: sums.map(|slot| MemberSum { slot, crc32c: 9, sums_crc32c: 6 }).collect(),
        parities: vec![ParityRecord { len: 1 << 30, crc32c: 7 }; 2],
        checksum: SHAPE,
    };
    assert_eq!(fs.ok(form), Outcome::Done);
    handle
}

pub(crate) fn pack(fs: &mut Fs, (container, gs): Begun) -> Outcome {
    fs.ok(Pack { container, gs })
}

/// A container with all of these packed, in a group.
pub(crate) fn packed(fs: &mut Fs, blocks: &[Block]) -> (Begun, BlockId) {
    let begun = begun(fs, blocks);
    assert_eq!(fs.ok(seal(begun, blocks, &[])), Outcome::Done);
    let group = group(fs, &[begun.0]);
    while pack(fs, begun) != Outcome::Flag(true) {}
    (begun, group)
}

pub(crate) fn refusal(outcome: Outcome) -> String {
    match outcome {
        Outcome::GroupRefused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn state(fs: &Fs, container: BlockId) -> Option<ContainerState> {
    query::container(&fs.store, container).unwrap().map(|container| container.state)
}

#[test]
fn small_blocks_wait_to_be_packed_only_where_that_is_asked_for() {
    let mut fs = fs();
    let small = write(&mut fs, "/c/small", 1000);
    let large = write(&mut fs, "/c/large", MIB);
    assert_eq!(waiting(&fs), [small.id]);
    let groupable = query::waiting(&fs.store, u64::MAX, None, 100).unwrap();
    assert_eq!(groupable.iter().map(|of| of.id).collect::<Vec<_>>(), [large.id]);
    let due_ms = query::waiting_since(&fs.store, small.id).unwrap().unwrap();
    assert!(query::waiting_to_be_packed(&fs.store, due_ms - 1, None, 9).unwrap().is_empty());
    let first = query::waiting_to_be_packed(&fs.store, due_ms, None, 9).unwrap().remove(0);
    assert_eq!((first.due_ms, first.id), (due_ms, small.id));
    assert!(query::waiting_to_be_packed(&fs.store, due_ms, Some(first), 9).unwrap().is_empty());
    fs.delete("/c/small");
    assert!(waiting(&fs).is_empty());
    let off = Settings { block_size_min: 0, ..Settings::default() };
    fs.ok(Configure { settings: off.into() });
    write(&mut fs, "/c/other", 1000);
    assert!(waiting(&fs).is_empty());
}

#[test]
fn a_packed_block_is_where_its_container_is_and_asks_for_no_replica() {
    let mut fs = fs();
    let blocks =
        [("/c/a", 1000), ("/c/b", 512), ("/c/d", 1)].map(|(path, len)| write(&mut fs, path, len));
    let begun = begun(&mut fs, &blocks);
    let (container, gs) = begun;
    assert!(container.is_container());
    assert_eq!(
        fs.effects,
        [Effect::Allocated { id: container, gs }, Effect::PackBegun { id: container, gs }]
    );
    assert!(waiting(&fs).is_empty());
    assert_eq!(refusal(pack(&mut fs, begun)), format!("{container} is not sealed"));
    assert_eq!(fs.ok(seal(begun, &blocks, &[])), Outcome::Done);
    assert_eq!(wanted(&fs, container), Redundancy::Replicated(1));
    assert_eq!(refusal(pack(&mut fs, begun)), format!("{container} is in no group"));
    assert_eq!(wanted(&fs, blocks[0].id), Redundancy::Replicated(3), "nothing is safe yet");
    let handle = group(&mut fs, &[container]);
    assert_eq!(pack(&mut fs, begun), Outcome::Flag(true));
    let changed = blocks.each_ref().map(|block| Effect::Packed { id: block.id });
    assert_eq!(fs.effects, changed);
    let places = [0, 1024, 1536];
    for ((slot, offset), block) in (0..).zip(places).zip(&blocks) {
        let now = find(&fs, block.id).unwrap();
        assert_eq!(now.packed, Some(PackedIn { container, slot, offset }));
        assert_eq!(Block { packed: None, ..now }, *block, "nothing else has changed");
        assert_eq!(wanted(&fs, block.id), Redundancy::Replicated(0));
    }
    let of = query::container(&fs.store, container).unwrap().unwrap();
    assert_eq!((of.packed, of.live, of.live_len), (3, 3, 1513));
    assert_eq!(query::totals(&fs.store).unwrap().packed, 3);
    // A container that has packed blocks is kept as any block that nothing protects.
    assert_eq!(wanted(&fs, container), Redundancy::Replicated(1));
    fs.ok(BeginDissolve { handle });
    assert_eq!(wanted(&fs, container), Redundancy::Replicated(3));
    fs.ok(Dissolve { handle });
    assert_eq!(wanted(&fs, container), Redundancy::Replicated(3));
    let again = query::waiting(&fs.store, u64::MAX, None, 9).unwrap();
    assert_eq!(again.iter().map(|of| of.id).collect::<Vec<_>>(), [container]);
}

#[test]
fn a_block_is_packed_once_and_as_it_was_found() {
    let mut fs = fs();
    let blocks = [("/c/a", 1000), ("/c/b", 512)].map(|(path, len)| write(&mut fs, path, len));
    fs.write("/plain", &[100]);
    let fresh = begin(&blocks);
    let with = |change: &dyn Fn(&mut BeginPack)| {
        let mut begin = fresh.clone();
        change(&mut begin);
        begin
    };
    let first = blocks[0].id;
    for (begin, reason) in [
        (with(&|begin| begin.blocks.clear()), "0 blocks for a container".to_string()),
        (with(&|begin| begin.blocks[1] = begin.blocks[0]), "a block is named twice".to_string()),
        (with(&|begin| begin.blocks[0].len += 1), format!("{first} is not as it was")),
        (with(&|begin| begin.blocks[0].crc32c += 1), format!("{first} is not as it was")),
        (
            with(&|begin| begin.blocks[0].gs = GenerationStamp(1)),
            format!("{first} is not as it was"),
        ),
        (with(&|begin| begin.blocks[0].id = BlockId(7)), "blk_7 does not wait".to_string()),
        (
            with(&|begin| begin.policy = PolicyId(33)),
            format!("the file of {first} is not to be kept so"),
        ),
        (
            with(&|begin| begin.policy = PolicyId(2)),
            "no policy of contiguous groups has number 2".to_string(),
        ),
    ] {
        assert_eq!(refusal(fs.ok(begin)), reason);
    }
    let one = begun(&mut fs, &blocks);
    assert_eq!(refusal(fs.ok(fresh.clone())), format!("{first} does not wait"));
    // What was begun and given up waits again, and no late message is heard.
    assert_eq!(fs.ok(AbandonPack { container: one.0 }), Outcome::Flag(true));
    assert_eq!(fs.effects, [Effect::Removed { id: one.0, gs: one.1 }]);
    assert_eq!(waiting(&fs).len(), 2);
    let late = refusal(fs.ok(seal(one, &blocks, &[])));
    assert_eq!(late, format!("{} is not being built", one.0));
    let two = begun(&mut fs, &blocks);
    assert!(two.0 > one.0 && two.1 > one.1, "no id and stamp names two strings of bytes");
}

/// Mistakes of whoever has packed: a slip by a slot, two blocks exchanged, bytes of another attempt.
#[test]
fn a_container_is_what_its_blocks_records_say_or_nothing() {
    let mut fs = fs();
    let blocks = [("/c/a", 1000), ("/c/b", 512)].map(|(path, len)| write(&mut fs, path, len));
    let begun = begun(&mut fs, &blocks);
    let fresh = seal(begun, &blocks, &[]);
    let with = |change: &dyn Fn(&mut SealPack)| {
        let mut seal = fresh.clone();
        change(&mut seal);
        seal
    };
    for wrong in [
        with(&|seal| seal.crcs = vec![5, 6]),
        with(&|seal| seal.crcs = vec![6, 5]),
        with(&|seal| seal.crcs = vec![5]),
        with(&|seal| seal.crcs = vec![5, 5, 5]),
        with(&|seal| seal.len -= 1),
        with(&|seal| seal.left_out = vec![0]),
        with(&|seal| seal.left_out = vec![0, 1]),
        with(&|seal| seal.gs = GenerationStamp(7)),
        with(&|seal| seal.checksum.bytes_per_checksum = 4096),
        with(&|seal| seal.checksum.bytes_per_checksum = 0),
    ] {
        refusal(fs.ok(wrong));
        assert!(matches!(state(&fs, begun.0), Some(ContainerState::Building { .. })));
    }
    assert_eq!(fs.ok(seal(begun, &blocks, &[0])), Outcome::Done);
    assert_eq!(waiting(&fs), [blocks[0].id], "what was left out waits again");
    group(&mut fs, &[begun.0]);
    pack(&mut fs, begun);
    let at = find(&fs, blocks[1].id).unwrap().packed.unwrap();
    assert_eq!((at.slot, at.offset), (1, 0));
}

#[test]
fn whoever_changes_a_block_before_it_is_packed_has_won() {
    let mut fs = fs();
    let blocks = ["/c/a", "/c/b", "/c/d", "/c/e"].map(|path| write(&mut fs, path, 1000));
    let begun = begun(&mut fs, &blocks);
    fs.ok(seal(begun, &blocks, &[]));
    group(&mut fs, &[begun.0]);
    fs.delete("/c/a");
    let seen = LastBlocks { seen: None, last_min_replicated: true, ..LastBlocks::default() };
    let append = |path: &str| Append {
        path: path.into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas: seen,
    };
    fs.ok(append("/c/b"));
    fs.ok(Rename { src: "/c/d".into(), dst: "/c/renamed".into() });
    assert_eq!(pack(&mut fs, begun), Outcome::Flag(true));
    let is_packed = |fs: &Fs, n: usize| find(fs, blocks[n].id).map(|of| of.packed.is_some());
    assert_eq!(
        [0, 1, 2, 3].map(|n| is_packed(&fs, n)),
        [None, Some(false), Some(true), Some(true)]
    );
    let offset = find(&fs, blocks[3].id).unwrap().packed.unwrap().offset;
    assert_eq!(offset, 3072, "its bytes are where they were written");
    let rows = query::pack_slots(&fs.store, begun.0, 0, 9).unwrap();
    assert_eq!(rows.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn many_blocks_are_packed_step_by_step() {
    let mut fs = fs();
    let blocks: Vec<_> = (0..1003).map(|n| write(&mut fs, &format!("/c/{n}"), 10)).collect();
    let begun = begun(&mut fs, &blocks);
    fs.ok(seal(begun, &blocks, &[]));
    group(&mut fs, &[begun.0]);
    assert_eq!(pack(&mut fs, begun), Outcome::Flag(false));
    assert_eq!(state(&fs, begun.0), Some(ContainerState::Packing { next: 1000, offset: 512_000 }));
    let given_up = refusal(fs.ok(AbandonPack { container: begun.0 }));
    assert_eq!(given_up, format!("{} is needed", begun.0));
    assert_eq!(pack(&mut fs, begun), Outcome::Flag(true));
    assert_eq!(find(&fs, blocks[1002].id).unwrap().packed.unwrap().offset, 1002 * 512);
    assert_eq!(pack(&mut fs, begun), Outcome::Flag(true), "again is the same");
    assert_eq!(query::totals(&fs.store).unwrap().packed, 1003);
}

#[test]
fn a_container_ends_when_no_row_is_left_and_not_before() {
    let mut fs = fs();
    let blocks = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 1000));
    let ((container, gs), handle) = packed(&mut fs, &blocks);
    assert_eq!(refusal(fs.ok(EndPack { container })), format!("{container} has packed blocks"));
    fs.delete("/c/a");
    assert_eq!(fs.effects, [Effect::Removed { id: blocks[0].id, gs: blocks[0].gs }]);
    assert_eq!(refusal(fs.ok(EndPack { container })), format!("{container} has packed blocks"));
    fs.delete("/c/b");
    assert_eq!(fs.ok(EndPack { container }), Outcome::Done);
    // Others in its group may need its bytes.
    let tombstone = find(&fs, container).unwrap();
    assert!(tombstone.is_tombstone() && tombstone.gs == gs);
    assert_eq!(fs.effects, [Effect::MemberRetired { id: container }]);
    fs.ok(Dissolve { handle });
    assert_eq!(find(&fs, container), None);
    assert_eq!(state(&fs, container), None);
    assert_eq!(query::totals(&fs.store).unwrap().packed, 0);
}

#[test]
fn what_a_snapshot_has_is_packed_as_long_as_that_is_there() {
    let mut fs = fs();
    fs.ok(AllowSnapshot { path: "/c".into() });
    let blocks = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 1000));
    fs.ok(CreateSnapshot { path: "/c".into(), name: "s".into() });
    let ((container, _), _) = packed(&mut fs, &blocks);
    fs.delete("/c/a");
    assert!(find(&fs, blocks[0].id).unwrap().packed.is_some());
    fs.delete("/c/b");
    let of = query::container(&fs.store, container).unwrap().unwrap();
    assert_eq!((of.live, of.live_len), (2, 2000));
    refusal(fs.ok(EndPack { container }));
    fs.ok(DeleteSnapshot { path: "/c".into(), name: "s".into() });
    for _ in 0..20 {
        fs.ok(cairn_namespace::ops::snapshot::CollectSnapshot {});
        fs.ok(Purge { limit: 100 });
    }
    assert_eq!(find(&fs, blocks[0].id), None);
    assert_eq!(fs.ok(EndPack { container }), Outcome::Done);
    assert_eq!(state(&fs, container), None);
}

#[test]
fn a_packed_block_is_charged_as_one_in_a_group() {
    let mut fs = fs();
    let quota = |space_max| SetQuota { path: "/c".into(), names_max: QuotaChange::Keep, space_max };
    fs.ok(quota(QuotaChange::Set { max: 10 * MIB * 128 }));
    let blocks = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 3000));
    assert_eq!(space(&fs, "/c"), 18_000);
    let begun = begun(&mut fs, &blocks);
    fs.ok(seal(begun, &blocks, &[]));
    group(&mut fs, &[begun.0]);
    assert_eq!(space(&fs, "/c"), 18_000, "a group of containers charges nobody");
    pack(&mut fs, begun);
    assert_eq!(space(&fs, "/c"), 10_000);
    let counted = || query::quota_usage(&fs.store, &root(), "/c").unwrap();
    assert_eq!(counted().space, 10_000);
    fs.ok(Unpack { blocks: vec![blocks[0].id] });
    assert_eq!(wanted(&fs, blocks[0].id), Redundancy::Replicated(3));
    assert_eq!(space(&fs, "/c"), 14_000);
    assert_eq!(query::quota_usage(&fs.store, &root(), "/c").unwrap().space, 14_000);
    fs.delete("/c/b");
    assert_eq!(query::quota_usage(&fs.store, &root(), "/c").unwrap().space, 9000);
}

#[test]
fn files_with_packed_blocks_grow_by_new_ones() {
    let mut fs = fs();
    let blocks = [write(&mut fs, "/c/a", 1000)];
    packed(&mut fs, &blocks);
    let append = Append {
        path: "/c/a".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        // No replica is left of the last block, as far as the cluster knows.
        replicas: LastBlocks { seen: None, ..LastBlocks::default() },
    };
    let Outcome::Appended { last, .. } = fs.ok(append) else { panic!() };
    assert_eq!(last, None);
    let outcome = fs.ok(AddBlock { ..add_block("/c/a", None) });
    let Outcome::BlockAdded { offset, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(offset, 1000);
}
