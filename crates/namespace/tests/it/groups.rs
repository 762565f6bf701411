//! Contiguous files and groups: what clients are told, what waits, what a group keeps and what it lets go.

use crate::support::{Fs, MIB, add_block, complete, create, root, said, user};
use cairn_namespace::group::{ChecksumShape, GroupPauses, GroupState, ParityRecord};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::convert::Convert;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::ec::SetEcPolicy;
use cairn_namespace::ops::group::{
    Abandon, BeginDissolve, BeginEncode, Dissolve, Form, MemberSum, NewMember, PauseGroups,
};
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::ops::swap_blocks::SwapBlocks;
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{
    Block, BlockRef, Conversion, Effect, FileRedundancy, InodeId, Outcome, Settings, query,
};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, Redundancy};

const POLICY: PolicyId = PolicyId(34);

fn fs() -> Fs {
    let mut fs = Fs::new();
    fs.mkdirs("/c");
    fs.set_policy("/c", "RS-3-2-contiguous");
    fs
}

/// A closed file with blocks of these lengths, of which DataNodes have told the CRCs.
fn write(fs: &mut Fs, path: &str, lens: &[u64]) -> Vec<Block> {
    fs.create(path);
    let mut previous = None;
    for len in lens {
        let previous_crcs = vec![Some(5)];
        let outcome = fs.ok(AddBlock { previous_crcs, ..add_block(path, previous) });
        let Outcome::BlockAdded { block, .. } = outcome else { panic!("{outcome:?}") };
        previous = Some(BlockRef { len: *len, ..block.reference() });
    }
    let last_crcs = vec![Some(5)];
    assert_eq!(fs.ok(Complete { last_crcs, ..complete(path, previous) }), Outcome::Flag(true));
    blocks(fs, path)
}

fn blocks(fs: &Fs, path: &str) -> Vec<Block> {
    let found = query::get_blocks(&fs.store, &root(), path, 0, u64::MAX, 0).unwrap();
    found.blocks.into_iter().map(|(_, block)| block).collect()
}

fn block(fs: &Fs, id: BlockId) -> Block {
    query::get_block(&fs.store, id).unwrap().unwrap().block
}

fn begin(members: &[Block]) -> BeginEncode {
    let member =
        |block: &Block| NewMember { id: block.id, gs: block.gs, len: block.len, crc32c: 5 };
    let members = members.iter().map(member).collect();
    BeginEncode { policy: POLICY, members, supersedes: Vec::new() }
}

fn begun(fs: &mut Fs, begin: BeginEncode) -> (BlockId, GenerationStamp) {
    match fs.ok(begin) {
        Outcome::EncodeBegun { handle, gs } => (handle, gs),
        other => panic!("{other:?}"),
    }
}

fn form((handle, gs): (BlockId, GenerationStamp), members: u8) -> Form {
    Form {
        handle,
        gs,
        members: (0..members).map(|slot| MemberSum { slot, crc32c: 5, sums_crc32c: 6 }).collect(),
        parities: vec![ParityRecord { len: 1 << 30, crc32c: 7 }; 2],
        checksum: ChecksumShape { kind: 2, bytes_per_checksum: 512 },
    }
}

/// A group of these blocks.
fn group(fs: &mut Fs, members: &[Block]) -> BlockId {
    let attempt = begun(fs, begin(members));
    assert_eq!(fs.ok(form(attempt, members.len() as u8)), Outcome::Done);
    attempt.0
}

fn refusal(outcome: Outcome) -> String {
    match outcome {
        Outcome::GroupRefused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

fn append(path: &str) -> Append {
    Append {
        path: path.into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        // Nothing is left of the last block, as far as the cluster knows.
        replicas: LastBlocks { seen: None, ..LastBlocks::default() },
    }
}

fn truncate(path: &str, new_len: u64) -> Truncate {
    Truncate { path: path.into(), new_len, holder: "client".into(), client_machine: "host".into() }
}

fn space(fs: &Fs, path: &str) -> u64 {
    query::content_summary(&fs.store, &root(), path).unwrap().space
}

fn wanted(fs: &Fs, id: BlockId) -> Redundancy {
    query::get_block(&fs.store, id).unwrap().unwrap().redundancy
}

fn waiting(fs: &Fs) -> Vec<(BlockId, u64)> {
    let found = query::waiting(&fs.store, u64::MAX - 1, None, 100).unwrap();
    found.into_iter().map(|waiting| (waiting.id, waiting.due_ms)).collect()
}

#[test]
fn writers_and_readers_see_replicas_and_a_status_tells_the_truth() {
    let mut fs = fs();
    let Outcome::Created { status } = fs.ok(create("/c/f")) else { panic!() };
    let redundancy = FileRedundancy::Contiguous { copies: 3, policy: POLICY };
    assert_eq!(status.policy, None);
    assert_eq!(status.inode.file().unwrap().redundancy, redundancy);
    fs.complete("/c/f", None);
    let Outcome::Appended { status, .. } = fs.ok(append("/c/f")) else { panic!() };
    assert_eq!((status.policy.clone(), status.replication()), (None, 3));
    let told = fs.status("/c/f").unwrap().policy.unwrap();
    assert_eq!(told.name, "RS-3-2-contiguous");
    assert_eq!(query::get_ec_policy(&fs.store, &root(), "/c/f").unwrap(), Some(told));
    let summary = query::content_summary(&fs.store, &root(), "/c/f").unwrap();
    assert_eq!(summary.policy, "RS-3-2-contiguous");
    let found = query::get_blocks(&fs.store, &root(), "/c/f", 0, 1, 0).unwrap();
    assert_eq!(found.redundancy, Redundancy::Replicated(3));
    // It is not what the directory says, if the client says so.
    let plain = Create { should_replicate: true, replication: 2, ..create("/c/plain") };
    let Outcome::Created { status } = fs.ok(plain) else { panic!() };
    assert_eq!(status.inode.file().unwrap().redundancy, FileRedundancy::Replicated(2));
    // Copies are bounded as those of other replicated files are, and blocks may be small.
    let many = Create { replication: 513, ..create("/c/many") };
    assert_eq!(said(&fs.err(many)).0, "IOException");
    fs.ok(Create { block_size: 512, ..create("/c/small") });
}

#[test]
fn a_group_keeps_its_members_with_one_copy_each() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[128 * MIB, 128 * MIB, 5 * MIB]);
    let (handle, gs) = begun(&mut fs, begin(&members));
    assert!(handle.is_parity() && fs.effects == [Effect::GroupBegun { handle, gs }]);
    assert_eq!(query::open_attempts(&fs.store).unwrap(), [handle]);
    assert_eq!(query::attempt_of(&fs.store, members[1].id).unwrap(), Some(handle));
    assert_eq!(wanted(&fs, members[0].id), Redundancy::Replicated(3), "nothing is safe yet");
    assert_eq!(fs.ok(form((handle, gs), 3)), Outcome::Done);
    let mut effects: Vec<Effect> =
        members.iter().map(|member| Effect::CopiesChanged { id: member.id }).collect();
    effects.push(Effect::GroupFormed { handle });
    assert_eq!(fs.effects, effects);
    let formed = query::group(&fs.store, handle).unwrap().unwrap();
    assert_eq!(
        (formed.state, formed.data_len, formed.k, formed.m),
        (GroupState::Formed, 128 * MIB, 3, 2)
    );
    assert!(
        formed.live_members().count() == 3 && query::open_attempts(&fs.store).unwrap().is_empty()
    );
    for (slot, member) in (0u8..).zip(&members) {
        let place = block(&fs, member.id).group.unwrap();
        assert_eq!((place.handle, place.slot), (handle, slot));
        assert_eq!(wanted(&fs, member.id), Redundancy::Replicated(1));
    }
    // Another number of copies is for what will be in no group.
    let set = SetReplication { path: "/c/f".into(), replication: 5 };
    assert!(matches!(fs.ok(set), Outcome::ReplicationSet { done: true, old: 3, new: 5, .. }));
    assert_eq!(wanted(&fs, members[0].id), Redundancy::Replicated(1));
    assert_eq!(fs.ok(BeginDissolve { handle }), Outcome::Done);
    assert_eq!(wanted(&fs, members[0].id), Redundancy::Replicated(5));
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    assert_eq!(query::group(&fs.store, handle).unwrap(), None);
    assert_eq!(block(&fs, members[0].id).group, None);
    // No attempt has the number or the stamp of another.
    let again = begun(&mut fs, begin(&members));
    assert!(again.0 > handle && again.1 > gs);
}

#[test]
fn an_attempt_begins_with_blocks_as_they_are_and_on_their_own() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[MIB, MIB, MIB]);
    let fresh = begin(&members);
    let with = |change: &dyn Fn(&mut BeginEncode)| {
        let mut begin = fresh.clone();
        change(&mut begin);
        begin
    };
    fs.write("/plain", &[MIB]);
    let plain = blocks(&fs, "/plain").remove(0);
    for (begin, reason) in [
        (with(&|begin| begin.members.clear()), "0 members for 3 slots"),
        (with(&|begin| begin.members.push(begin.members[0])), "4 members for 3 slots"),
        (with(&|begin| begin.members[1] = begin.members[0]), "a block is named twice"),
        (with(&|begin| begin.policy = PolicyId(2)), "no policy of contiguous groups has number 2"),
        (
            with(&|begin| begin.policy = PolicyId(33)),
            "the file of blk_1073741825 is not to be kept so",
        ),
        (with(&|begin| begin.members[0].id = BlockId(7)), "there is no block blk_7"),
        (
            with(&|begin| begin.members[0].gs = GenerationStamp(9)),
            "blk_1073741825 is not as it was",
        ),
        (with(&|begin| begin.members[0].len -= 1), "blk_1073741825 is not as it was"),
        (with(&|begin| begin.members[0].crc32c = 6), "blk_1073741825 is not as it was"),
        (with(&|begin| begin.members[0].id = plain.id), "blk_1073741828 is not as it was"),
        (
            with(&|begin| begin.supersedes.push(BlockId(1 << 61))),
            "there is no group blk_2305843009213693952",
        ),
    ] {
        assert_eq!(refusal(fs.ok(begin)), reason);
    }
    let (handle, gs) = begun(&mut fs, fresh.clone());
    assert_eq!(refusal(fs.ok(fresh.clone())), format!("blk_1073741825 is in attempt {handle}"));
    assert_eq!(fs.ok(Abandon { handle }), Outcome::Done);
    assert_eq!(fs.effects, [Effect::GroupEnded { handle, gs }]);
    assert_eq!(fs.ok(Abandon { handle }), Outcome::Done);
    // No late message of it is heard.
    let late = refusal(fs.ok(form((handle, gs), 3)));
    assert_eq!(late, format!("there is no open attempt {handle} of stamp {gs}"));
    let handle = group(&mut fs, &members);
    assert_eq!(refusal(fs.ok(fresh)), format!("blk_1073741825 is in group {handle}"));
    assert_eq!(
        refusal(fs.ok(Abandon { handle })),
        format!("group {handle} is no attempt any more")
    );
    assert_eq!(refusal(fs.ok(Dissolve { handle })), format!("group {handle} has live members"));
}

#[test]
fn what_the_encoder_has_read_must_be_what_was_begun() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[MIB, MIB]);
    let attempt = begun(&mut fs, begin(&members));
    let fresh = form(attempt, 2);
    let with = |change: &dyn Fn(&mut Form)| {
        let mut form = fresh.clone();
        change(&mut form);
        form
    };
    for (form, reason) in [
        (with(&|form| form.gs = GenerationStamp(9)), "there is no open attempt"),
        (with(&|form| form.parities.truncate(1)), "1 parities instead of 2"),
        (with(&|form| form.parities[1].len = MIB - 1), "a parity of 1048575 bytes for 1048576"),
        (with(&|form| form.members[1].crc32c = 6), "other bytes were read of blk_1073741826"),
        (with(&|form| form.members[1].slot = 2), "slot 2 is empty"),
        (with(&|form| form.members[1].slot = 0), "blk_1073741826 was not read"),
        (with(&|form| form.members.truncate(1)), "blk_1073741826 was not read"),
    ] {
        let told = refusal(fs.ok(form));
        assert!(told.starts_with(reason), "{told}");
    }
    assert_eq!(fs.ok(fresh), Outcome::Done);
}

#[test]
fn whoever_changes_a_member_meanwhile_wins() {
    type Change = fn(&mut Fs);
    let changes: [(&str, Change); 4] = [
        ("blk_1073741825 is not as it was", |fs| {
            fs.ok(Append {
                replicas: LastBlocks { last_min_replicated: true, ..LastBlocks::default() },
                ..append("/c/f")
            });
        }),
        ("the file of blk_1073741825 is open", |fs| {
            fs.ok(Append {
                new_block: true,
                replicas: LastBlocks { last_min_replicated: true, ..LastBlocks::default() },
                ..append("/c/f")
            });
        }),
        ("blk_1073741825 is not as it was", |fs| {
            fs.ok(truncate("/c/f", 5));
        }),
        ("there is no block blk_1073741825", |fs| {
            fs.delete("/c/f");
            fs.ok(Purge { limit: 100 });
        }),
    ];
    for (reason, change) in changes {
        let mut fs = fs();
        let members = write(&mut fs, "/c/f", &[MIB]);
        let attempt = begun(&mut fs, begin(&members));
        change(&mut fs);
        assert_eq!(refusal(fs.ok(form(attempt, 1))), reason);
    }
    // What is copied from is being written, as far as it is needed for that.
    let mut fs = fs();
    fs.ok(AllowSnapshot { path: "/c".into() });
    let members = write(&mut fs, "/c/f", &[MIB]);
    fs.ok(CreateSnapshot { path: "/c".into(), name: "s".into() });
    let attempt = begun(&mut fs, begin(&members));
    fs.ok(truncate("/c/f", 5));
    assert_eq!(refusal(fs.ok(form(attempt, 1))), "blk_1073741825 is being copied");
}

#[test]
fn a_member_that_no_file_has_stays_until_its_group_goes() {
    let mut fs = fs();
    let first = write(&mut fs, "/c/f", &[MIB, MIB]);
    let second = write(&mut fs, "/c/g", &[MIB]);
    let members = [first.clone(), second.clone()].concat();
    let handle = group(&mut fs, &members);
    let total = |fs: &Fs| query::totals(&fs.store).unwrap().blocks;
    assert_eq!(total(&fs), 3);
    fs.delete("/c/f");
    let retired: Vec<Effect> =
        first.iter().map(|block| Effect::MemberRetired { id: block.id }).collect();
    assert_eq!(fs.effects, retired);
    for gone in &first {
        let tombstone = block(&fs, gone.id);
        assert!(tombstone.is_tombstone() && tombstone.reference() == gone.reference());
        assert_eq!(wanted(&fs, gone.id), Redundancy::Replicated(1));
    }
    assert_eq!(total(&fs), 3, "DataNodes have them");
    let live = query::group(&fs.store, handle).unwrap().unwrap();
    assert_eq!(live.live_members().map(|(slot, _)| slot).collect::<Vec<_>>(), [2]);
    assert_eq!(refusal(fs.ok(begin(&first))), format!("{} is in group {handle}", first[0].id));
    fs.delete("/c/g");
    fs.ok(Purge { limit: 100 });
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    assert_eq!(fs.removed_ids(), members.iter().map(|block| block.id).collect::<Vec<_>>());
    assert_eq!(total(&fs), 0);
}

#[test]
fn a_snapshot_keeps_a_member_alive() {
    let mut fs = fs();
    fs.ok(AllowSnapshot { path: "/c".into() });
    let members = write(&mut fs, "/c/f", &[MIB]);
    let handle = group(&mut fs, &members);
    fs.ok(CreateSnapshot { path: "/c".into(), name: "s".into() });
    fs.delete("/c/f");
    assert_eq!(fs.effects, []);
    assert!(!block(&fs, members[0].id).is_tombstone());
    fs.ok(DeleteSnapshot { path: "/c".into(), name: "s".into() });
    fs.ok(Purge { limit: 100 });
    assert!(block(&fs, members[0].id).is_tombstone());
    assert_eq!(query::group(&fs.store, handle).unwrap().unwrap().live_members().count(), 0);
}

#[test]
fn an_append_behind_a_member_begins_with_a_block_of_its_own() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[MIB]);
    group(&mut fs, &members);
    let Outcome::Appended { last, .. } = fs.ok(append("/c/f")) else { panic!() };
    assert_eq!(last, None);
    let added = fs.add_block("/c/f", None);
    assert_eq!(
        blocks(&fs, "/c/f").iter().map(|block| block.id).collect::<Vec<_>>(),
        [members[0].id, added.id]
    );
    // The answer was lost; so it is when the block was taken back meanwhile.
    let Outcome::BlockAdded { block: again, retry: true, offset } = fs.ok(add_block("/c/f", None))
    else {
        panic!()
    };
    assert_eq!((again, offset), (added.clone(), MIB));
    let named = added.reference();
    fs.ok(AbandonBlock { path: "/c/f".into(), file: None, holder: "client".into(), block: named });
    let other = fs.add_block("/c/f", None);
    assert_ne!(other.id, added.id);
    let last = BlockRef { len: 5, ..other.reference() };
    // One that has bytes is no answer that was lost.
    let next = fs.add_block("/c/f", Some(last));
    assert!(
        fs.err(add_block("/c/f", None)).to_string().contains("does not match actual last block")
    );
    fs.complete("/c/f", Some(BlockRef { len: 6, ..next.reference() }));
    assert_eq!(fs.status("/c/f").unwrap().len(), MIB + 11);
    assert_eq!(block(&fs, members[0].id).reference(), members[0].reference());
}

#[test]
fn a_member_is_cut_off_by_a_copy_and_then_retired() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[4 * MIB]);
    let handle = group(&mut fs, &members);
    assert_eq!(fs.ok(truncate("/c/f", MIB)), Outcome::Recovery { closed: false });
    let copy = fs.ordered().unwrap();
    assert_eq!(copy.block.copy_source(), Some(members[0].id));
    assert_eq!(block(&fs, members[0].id).reference(), members[0].reference());
    assert!(!block(&fs, members[0].id).is_tombstone());
    assert_eq!(space(&fs, "/c"), 3 * MIB, "its bytes are counted once");
    // The same call again is answered as the first.
    assert_eq!(fs.ok(truncate("/c/f", MIB)), Outcome::Removed { done: false, more: false });
    // Nothing of it makes the copy go: it has bytes that were acknowledged.
    let synchronize = |delete_block| CommitBlockSynchronization {
        block: members[0].reference(),
        new_gs: copy.recovery_gs,
        new_len: MIB,
        close_file: true,
        delete_block,
    };
    assert_eq!(said(&fs.err(synchronize(DropBlock::Unacknowledged))).0, "IOException");
    fs.ok(synchronize(DropBlock::No));
    assert!(fs.effects.contains(&Effect::MemberRetired { id: members[0].id }), "{:?}", fs.effects);
    let tombstone = block(&fs, members[0].id);
    assert!(tombstone.is_tombstone() && tombstone.reference() == members[0].reference());
    assert_eq!(query::group(&fs.store, handle).unwrap().unwrap().live_members().count(), 0);
    // A whole member that is cut off keeps its bytes in the group, too.
    let others = write(&mut fs, "/c/g", &[2 * MIB, 3 * MIB]);
    group(&mut fs, &others);
    assert_eq!(fs.ok(truncate("/c/g", 2 * MIB)), Outcome::Removed { done: true, more: false });
    let tombstone = block(&fs, others[1].id);
    assert!(tombstone.is_tombstone() && tombstone.reference() == others[1].reference());
}

#[test]
fn a_file_that_goes_while_a_member_is_copied_leaves_the_member() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[4 * MIB]);
    group(&mut fs, &members);
    fs.ok(truncate("/c/f", MIB));
    let copy = fs.ordered().unwrap().block.id;
    fs.delete("/c/f");
    fs.ok(Purge { limit: 100 });
    assert_eq!(query::get_block(&fs.store, copy).unwrap(), None);
    let tombstone = block(&fs, members[0].id);
    assert!(tombstone.is_tombstone() && tombstone.reference() == members[0].reference());
}

#[test]
fn a_group_gives_its_members_to_another_and_keeps_what_it_needs_until_it_ends() {
    let mut fs = fs();
    let old = [write(&mut fs, "/c/f", &[MIB]), write(&mut fs, "/c/g", &[MIB])].concat();
    let first = group(&mut fs, &old);
    fs.delete("/c/f");
    fs.ok(Purge { limit: 100 });
    let new = write(&mut fs, "/c/h", &[MIB]);
    let without = BeginEncode { supersedes: vec![first], ..begin(&new) };
    let left = format!("{} of group {first} would be left", old[1].id);
    assert_eq!(refusal(fs.ok(without)), left);
    let members = [old[1].clone(), new[0].clone()];
    let attempt = begun(&mut fs, BeginEncode { supersedes: vec![first], ..begin(&members) });
    assert_eq!(wanted(&fs, old[1].id), Redundancy::Replicated(1));
    assert_eq!(fs.ok(form(attempt, 2)), Outcome::Done);
    assert!(fs.effects.contains(&Effect::GroupChanged { handle: first }));
    assert_eq!(block(&fs, old[1].id).group.unwrap().handle, attempt.0);
    // Until the new one is whole, the old one could still be needed.
    let superseded = query::group(&fs.store, first).unwrap().unwrap();
    assert_eq!(superseded.state, GroupState::Superseded { by: attempt.0 });
    assert!(block(&fs, old[0].id).is_tombstone());
    assert_eq!(fs.ok(Dissolve { handle: first }), Outcome::Done);
    assert_eq!(fs.removed_ids(), [old[0].id]);
    assert_eq!(block(&fs, old[1].id).group.unwrap().handle, attempt.0);
}

#[test]
fn blocks_wait_until_they_were_quiet_for_long_enough() {
    const QUIET: u64 = 600_000;
    const SHORT: u64 = 3_600_000;
    let mut fs = fs();
    fs.create("/c/f");
    let mut previous = None;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let added = fs.add_block("/c/f", previous);
        ids.push(added.id);
        previous = Some(BlockRef { len: 128 * MIB, ..added.reference() });
    }
    // A whole block that is not among the last two may be grouped at once.
    assert_eq!(waiting(&fs), [(ids[0], fs.now_ms - 1), (ids[1], fs.now_ms)]);
    let added = fs.add_block("/c/f", previous);
    fs.complete("/c/f", Some(BlockRef { len: 2 * MIB, ..added.reference() }));
    let now = fs.now_ms;
    let due = [(ids[0], now - 3), (ids[1], now - 2), (ids[2], now - 1)];
    let closed = [(ids[3], now + QUIET), (added.id, now + SHORT)];
    assert_eq!(waiting(&fs), [&due[..], &closed].concat());
    // Pages go on where the last one ended.
    let first = query::waiting(&fs.store, now, None, 2).unwrap();
    let second = query::waiting(&fs.store, now, first.last().copied(), 2).unwrap();
    assert_eq!([first.len(), second.len()], [2, 1]);
    // Each append that meets a short block has it wait twice as long, a week at most.
    let ready = LastBlocks { last_min_replicated: true, ..LastBlocks::default() };
    for doubled in [2, 4, 8, 16, 32, 64, 128, 168, 168] {
        let Outcome::Appended { last, .. } = fs.ok(Append { replicas: ready, ..append("/c/f") })
        else {
            panic!()
        };
        assert_eq!(waiting(&fs), due);
        let (_, block) = last.unwrap();
        fs.complete("/c/f", Some(BlockRef { len: block.len + 1, ..block.reference() }));
        let (now, last) = (fs.now_ms, (block.id, fs.now_ms + doubled * SHORT));
        assert_eq!(waiting(&fs), [&due[..], &[(ids[3], now + QUIET), last]].concat());
    }
    fs.delete("/c/f");
    fs.ok(Purge { limit: 100 });
    assert_eq!(waiting(&fs), []);
    // What is too short never waits; without quiet times nothing waits for long.
    let settings = Settings {
        block_size_min: 0,
        group_quiet_ms: 0,
        group_short_quiet_ms: 0,
        group_len_min: 5,
        ..Settings::default()
    };
    fs.ok(Configure { settings: settings.into() });
    let small = write(&mut fs, "/c/small", &[4]);
    let short = write(&mut fs, "/c/short", &[5]);
    assert_eq!(waiting(&fs), [(short[0].id, fs.now_ms)]);
    assert!(query::waiting_since(&fs.store, small[0].id).unwrap().is_none());
    fs.write("/plain", &[128 * MIB, 128 * MIB, 128 * MIB]);
    group(&mut fs, &short);
    assert_eq!(waiting(&fs), [], "what is in a group does not wait");
}

#[test]
fn contiguous_files_are_joined_with_their_like() {
    let mut fs = fs();
    let one = write(&mut fs, "/c/f", &[MIB]);
    let other = write(&mut fs, "/c/g", &[MIB]);
    let handle = group(&mut fs, &[one, other.clone()].concat());
    fs.ok(SetReplication { path: "/c/g".into(), replication: 2 });
    fs.ok(Concat { target: "/c/f".into(), sources: vec!["/c/g".into()] });
    let joined = blocks(&fs, "/c/f");
    assert!(joined.len() == 2 && joined.iter().all(|b| b.group.unwrap().handle == handle));
    fs.ok(SetEcPolicy { path: "/c".into(), policy: Some("replication".into()) });
    fs.write("/c/plain", &[MIB]);
    let refused = fs.err(Concat { target: "/c/f".into(), sources: vec!["/c/plain".into()] });
    assert!(refused.to_string().contains("have different erasure coding policy"), "{refused}");
}

#[test]
fn space_is_counted_as_blocks_are_kept() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[3 * MIB, 6 * MIB]);
    assert_eq!(space(&fs, "/c"), 27 * MIB);
    group(&mut fs, &members[..1]);
    assert_eq!(space(&fs, "/c"), 5 * MIB + 18 * MIB);
    fs.ok(SetReplication { path: "/c/f".into(), replication: 2 });
    assert_eq!(space(&fs, "/c"), 5 * MIB + 12 * MIB);
}

fn id(fs: &Fs, path: &str) -> InodeId {
    fs.status(path).unwrap().inode.id
}

fn converted(fs: &mut Fs, paths: &[&str], policy: &str) -> Vec<Conversion> {
    let files = paths.iter().map(|path| id(fs, path)).collect();
    match fs.ok(Convert { files, policy: policy.into() }) {
        Outcome::Converted(converted) => converted,
        other => panic!("{other:?}"),
    }
}

const CONTIGUOUS: &str = "RS-3-2-contiguous";

#[test]
fn a_replicated_file_becomes_contiguous_as_it_is() {
    let mut fs = fs();
    fs.mkdirs("/r");
    let before = write(&mut fs, "/r/f", &[3 * MIB, MIB]);
    assert!(waiting(&fs).is_empty());
    let status = fs.status("/r/f").unwrap();
    assert_eq!(converted(&mut fs, &["/r/f"], CONTIGUOUS), [Conversion::Done]);
    let now = fs.status("/r/f").unwrap();
    let redundancy = now.inode.file().unwrap().redundancy;
    assert_eq!(redundancy, FileRedundancy::Contiguous { copies: 3, policy: POLICY });
    let times = |status: &query::FileStatus| (status.inode.mtime, status.inode.atime);
    assert_eq!((now.inode.id, times(&now)), (status.inode.id, times(&status)));
    assert_eq!(blocks(&fs, "/r/f"), before);
    assert!(fs.effects.is_empty(), "as many copies are wanted as before");
    let ids: Vec<BlockId> = waiting(&fs).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [before[0].id, before[1].id]);
    assert_eq!(converted(&mut fs, &["/r/f"], CONTIGUOUS), [Conversion::Same]);
    group(&mut fs, &before);
    assert_eq!(blocks(&fs, "/r/f")[0].reference(), before[0].reference());
}

#[test]
fn a_file_that_leaves_a_group_has_it_dissolved_and_the_others_wait_again() {
    let mut fs = fs();
    let members = [write(&mut fs, "/c/f", &[MIB]), write(&mut fs, "/c/g", &[MIB])].concat();
    let handle = group(&mut fs, &members);
    assert_eq!(converted(&mut fs, &["/c/f"], "replication"), [Conversion::Done]);
    assert!(query::group(&fs.store, handle).unwrap().unwrap().is_dissolving());
    assert!(fs.effects.contains(&Effect::GroupChanged { handle }));
    for member in &members {
        assert!(fs.effects.contains(&Effect::CopiesChanged { id: member.id }));
        assert_eq!(wanted(&fs, member.id), Redundancy::Replicated(3));
    }
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    let ids: Vec<BlockId> = waiting(&fs).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [members[1].id]);
    assert_eq!(
        refusal(fs.ok(begin(&members))),
        format!("the file of {} is not to be kept so", members[0].id)
    );
}

#[test]
fn a_file_goes_from_one_contiguous_policy_to_another() {
    let mut fs = fs();
    fs.mkdirs("/other");
    fs.set_policy("/other", "RS-6-3-contiguous");
    let members = write(&mut fs, "/c/f", &[MIB]);
    let handle = group(&mut fs, &members);
    assert_eq!(converted(&mut fs, &["/c/f"], "RS-6-3-contiguous"), [Conversion::Done]);
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    assert_eq!(waiting(&fs).len(), 1);
    let other = BeginEncode { policy: PolicyId(33), ..begin(&members) };
    begun(&mut fs, other);
}

#[test]
fn whoever_is_converted_while_a_group_is_made_is_in_none() {
    let mut fs = fs();
    let members = write(&mut fs, "/c/f", &[MIB]);
    let attempt = begun(&mut fs, begin(&members));
    converted(&mut fs, &["/c/f"], "replication");
    assert!(waiting(&fs).is_empty());
    refusal(fs.ok(form(attempt, 1)));
}

#[test]
fn a_file_that_left_its_group_and_goes_leaves_its_bytes_to_the_others() {
    let mut fs = fs();
    fs.mkdirs("/c/d");
    let members = [write(&mut fs, "/c/d/f", &[MIB]), write(&mut fs, "/c/g", &[MIB])].concat();
    let handle = group(&mut fs, &members);
    converted(&mut fs, &["/c/d/f"], "replication");
    fs.delete("/c/d");
    fs.ok(Purge { limit: 100 });
    assert!(block(&fs, members[0].id).is_tombstone());
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    assert_eq!(fs.removed_ids(), [members[0].id]);
}

#[test]
fn only_what_can_be_is_converted() {
    let mut fs = fs();
    fs.mkdirs("/s");
    fs.set_policy("/s", "RS-3-2-1024k");
    write(&mut fs, "/s/f", &[MIB]);
    let members = write(&mut fs, "/c/f", &[3 * MIB, 3 * MIB, 3 * MIB]);
    group(&mut fs, &members);
    assert_eq!(space(&fs, "/c"), 15 * MIB);
    fs.ok(SetQuota {
        path: "/c".into(),
        names_max: QuotaChange::Keep,
        space_max: QuotaChange::Set { max: 20 * MIB },
    });
    let gone = id(&fs, "/c/f");
    let [refused] = &converted(&mut fs, &["/c/f"], "replication")[..] else { panic!("one file") };
    assert!(matches!(refused, Conversion::Refused(why) if why.contains("quota")), "{refused:?}");
    assert_eq!(space(&fs, "/c"), 15 * MIB);
    assert_eq!(
        converted(&mut fs, &["/s/f", "/c"], CONTIGUOUS),
        [Conversion::Striped, Conversion::Gone]
    );
    fs.delete("/c/f");
    let convert = Convert { files: vec![gone], policy: CONTIGUOUS.into() };
    assert_eq!(fs.ok(convert.clone()), Outcome::Converted(vec![Conversion::Gone]));
    let striped = Convert { policy: "RS-3-2-1024k".into(), ..convert.clone() };
    assert!(said(&fs.run(root(), striped).unwrap_err()).1.contains("striped"));
    let unknown = Convert { policy: "RS-6-3-contiguous".into(), ..convert };
    let refused = said(&fs.run(root(), unknown).unwrap_err()).1;
    assert!(refused.contains("does not match any enabled"), "{refused}");
}

/// What is to be done to a striped file that was copied as it is now.
fn swap(fs: &Fs, file: &str, copy: &str) -> SwapBlocks {
    let now = fs.status(file).unwrap().inode;
    let len = now.file().unwrap().len;
    SwapBlocks { file: now.id, copy: id(fs, copy), mtime: now.mtime, len }
}

fn swapped(fs: &mut Fs, swap: SwapBlocks) -> Conversion {
    match fs.ok(swap) {
        Outcome::Converted(mut one) => one.remove(0),
        other => panic!("{other:?}"),
    }
}

fn refused(why: &str) -> Conversion {
    Conversion::Refused(why.to_string())
}

#[test]
fn a_striped_file_gets_the_blocks_of_its_copy() {
    let mut fs = fs();
    fs.mkdirs("/s");
    fs.set_policy("/s", "RS-3-2-1024k");
    let groups = write(&mut fs, "/s/f", &[5 * MIB, 4 * MIB]);
    let members = write(&mut fs, "/c/copy", &[4 * MIB, 4 * MIB, MIB]);
    let handle = group(&mut fs, &members);
    let (striped, grouped) = (space(&fs, "/s"), space(&fs, "/c"));
    let before = fs.status("/s/f").unwrap().inode;
    let swap = swap(&fs, "/s/f", "/c/copy");
    assert_eq!(swapped(&mut fs, swap.clone()), Conversion::Done);
    let after = fs.status("/s/f").unwrap().inode;
    assert_eq!((after.id, after.mtime, after.atime), (before.id, before.mtime, before.atime));
    let file = after.file().unwrap();
    assert_eq!((file.len, file.block_count), (9 * MIB, 3));
    assert_eq!(file.redundancy, FileRedundancy::Contiguous { copies: 3, policy: POLICY });
    // Blocks have other files, and nothing else about them is another.
    let ids = |blocks: &[Block]| blocks.iter().map(Block::reference).collect::<Vec<_>>();
    assert_eq!(ids(&blocks(&fs, "/s/f")), ids(&members));
    assert_eq!(ids(&blocks(&fs, "/c/copy")), ids(&groups));
    assert_eq!(block(&fs, members[1].id).group.map(|group| group.handle), Some(handle));
    assert!(fs.effects.contains(&Effect::CopiesChanged { id: groups[0].id }), "{:?}", fs.effects);
    assert_eq!((space(&fs, "/s"), space(&fs, "/c")), (grouped, striped));
    assert_eq!(swapped(&mut fs, swap), Conversion::Same);
    // Each goes with its file.
    fs.delete("/c/copy");
    assert_eq!(fs.removed_ids(), ids(&groups).iter().map(|block| block.id).collect::<Vec<_>>());
    fs.delete("/s/f");
    fs.ok(Dissolve { handle });
    assert_eq!(fs.removed_ids(), ids(&members).iter().map(|block| block.id).collect::<Vec<_>>());
}

#[test]
fn blocks_are_swapped_only_between_a_file_and_its_copy() {
    let mut fs = fs();
    fs.mkdirs("/s");
    fs.set_policy("/s", "RS-3-2-1024k");
    write(&mut fs, "/s/f", &[6 * MIB]);
    write(&mut fs, "/s/g", &[6 * MIB]);
    write(&mut fs, "/c/short", &[5 * MIB]);
    write(&mut fs, "/c/copy", &[6 * MIB]);
    let good = swap(&fs, "/s/f", "/c/copy");
    let short = swap(&fs, "/s/f", "/c/short");
    assert_eq!(swapped(&mut fs, short), refused("its copy is not whole"));
    let striped = swap(&fs, "/s/f", "/s/g");
    assert_eq!(swapped(&mut fs, striped), refused("its copy is striped"));
    let other_time = SwapBlocks { mtime: good.mtime + 1, ..good.clone() };
    assert_eq!(swapped(&mut fs, other_time), refused("it has changed meanwhile"));
    let gone = SwapBlocks { copy: InodeId(1 << 40), ..good.clone() };
    assert_eq!(swapped(&mut fs, gone), Conversion::Gone);
    assert!(fs.run(user("anyone"), good.clone()).is_err());

    let space_max = QuotaChange::Set { max: 20 * MIB };
    fs.ok(SetQuota { path: "/s".into(), names_max: QuotaChange::Keep, space_max });
    assert!(
        matches!(swapped(&mut fs, good.clone()), Conversion::Refused(why) if why.contains("quota"))
    );
    assert_eq!(blocks(&fs, "/s/f").len(), 1);
    assert_eq!(space(&fs, "/s"), 20 * MIB);
    fs.ok(SetQuota {
        path: "/s".into(),
        names_max: QuotaChange::Keep,
        space_max: QuotaChange::Clear,
    });

    fs.ok(AllowSnapshot { path: "/s".into() });
    fs.ok(CreateSnapshot { path: "/s".into(), name: "one".into() });
    assert_eq!(swapped(&mut fs, good.clone()), refused("a snapshot has it"));
    fs.ok(DeleteSnapshot { path: "/s".into(), name: "one".into() });
    assert_eq!(swapped(&mut fs, good), Conversion::Done);
}

#[test]
fn work_on_groups_is_held_back_by_its_kind() {
    let mut fs = fs();
    let none = GroupPauses::default();
    let pauses = |fs: &Fs| query::group_pauses(&fs.store).unwrap();
    let (form, drop) = (GroupPauses { form: true, ..none }, GroupPauses { drop: true, ..none });
    assert_eq!(pauses(&fs), none);
    fs.ok(PauseGroups { work: form, pause: true });
    fs.ok(PauseGroups { work: drop, pause: true });
    assert_eq!(pauses(&fs), GroupPauses { drop: true, ..form });
    fs.ok(PauseGroups { work: form, pause: false });
    assert_eq!(pauses(&fs), drop);
    assert!(fs.run(user("anyone"), PauseGroups { work: drop, pause: false }).is_err());
}
