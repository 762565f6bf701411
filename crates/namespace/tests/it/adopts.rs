//! What a restored namespace takes over of the groups that DataNodes have.

use crate::support::{Fs, MIB, add_block, complete, root};
use cairn_namespace::group::{ChecksumShape, GroupState, ParityRecord};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::adopt::{Adopt, AdoptedMember};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::group::{Abandon, BeginEncode, Dissolve, Form, MemberSum, NewMember};
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs};
use cairn_namespace::{Block, BlockRef, Effect, InodeId, Outcome, query};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};

const POLICY: PolicyId = PolicyId(34);
const PARITY: ParityRecord = ParityRecord { len: 2 * MIB, crc32c: 7 };
const CHECKSUM: ChecksumShape = ChecksumShape { kind: 2, bytes_per_checksum: 512 };

fn fs() -> Fs {
    let mut fs = Fs::new();
    fs.mkdirs("/c");
    fs.set_policy("/c", "RS-3-2-contiguous");
    fs
}

/// A closed file of one block, of which DataNodes have told the CRC or not.
fn write(fs: &mut Fs, path: &str, crc32c: Option<u32>) -> Block {
    fs.create(path);
    let Outcome::BlockAdded { block, .. } = fs.ok(AddBlock { ..add_block(path, None) }) else {
        panic!("no block is added")
    };
    let last = Some(BlockRef { len: MIB, ..block.reference() });
    let last_crcs = vec![crc32c];
    assert_eq!(fs.ok(Complete { last_crcs, ..complete(path, last) }), Outcome::Flag(true));
    get(fs, block.id)
}

fn get(fs: &Fs, id: BlockId) -> Block {
    query::get_block(&fs.store, id).unwrap().unwrap().block
}

/// The numbers of a group that nobody knows any more.
fn numbers(fs: &mut Fs, members: &[Block]) -> (BlockId, GenerationStamp) {
    let member = |of: &Block| NewMember { id: of.id, gs: of.gs, len: of.len, crc32c: 5 };
    let members = members.iter().map(member).collect();
    let begin = BeginEncode { policy: POLICY, members, supersedes: Vec::new() };
    match fs.ok(begin) {
        Outcome::EncodeBegun { handle, gs } => (handle, gs),
        other => panic!("{other:?}"),
    }
}

fn forgotten(fs: &mut Fs, member: &Block) -> (BlockId, GenerationStamp) {
    let (handle, gs) = numbers(fs, std::slice::from_ref(member));
    fs.ok(Abandon { handle });
    (handle, gs)
}

fn adopt((handle, gs): (BlockId, GenerationStamp), members: &[BlockRef]) -> Adopt {
    let member = |of: &BlockRef| {
        let BlockRef { id, gs, len } = *of;
        Some(AdoptedMember { id, gs, len, crc32c: 5, sums_crc32c: 6 })
    };
    let mut members: Vec<_> = members.iter().map(member).collect();
    members.resize(3, None);
    let (policy, data_len, parities) = (POLICY, MIB, vec![Some(PARITY); 2]);
    Adopt { handle, gs, policy, members, data_len, parities, checksum: CHECKSUM }
}

fn refusal(outcome: Outcome) -> String {
    match outcome {
        Outcome::GroupRefused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_is_taken_over_and_members_that_no_file_has_are_tombstones() {
    let mut fs = fs();
    let (a, b) = (write(&mut fs, "/c/a", Some(5)), write(&mut fs, "/c/b", None));
    let known = forgotten(&mut fs, &a);
    // A file that was written behind the moment that was restored.
    let lost = write(&mut fs, "/c/lost", Some(5));
    fs.delete("/c/lost");
    fs.ok(Purge { limit: 100 });
    assert_eq!(query::get_block(&fs.store, lost.id).unwrap(), None);
    let all = [a.reference(), lost.reference(), b.reference()];
    assert_eq!(fs.ok(adopt(known, &all)), Outcome::Done);
    let handle = known.0;
    assert_eq!(
        fs.effects,
        [
            Effect::CopiesChanged { id: a.id },
            Effect::CopiesChanged { id: b.id },
            Effect::MemberRetired { id: lost.id },
            Effect::GroupAdopted { handle },
        ]
    );
    let group = query::group(&fs.store, handle).unwrap().unwrap();
    assert_eq!((group.state, group.gs, group.parities.len()), (GroupState::Formed, known.1, 2));
    let live: Vec<bool> = group.members().map(|(_, member)| member.live).collect();
    assert_eq!(live, [true, false, true]);
    for (slot, member) in [(0, &a), (1, &lost), (2, &b)] {
        let now = get(&fs, member.id);
        assert_eq!(now.group.map(|of| (of.handle, of.slot)), Some((handle, slot)));
        assert_eq!(now.unit_crcs, [Some(5)], "what was not recorded is from then on");
    }
    assert!(get(&fs, lost.id).is_tombstone() && get(&fs, lost.id).file == InodeId::NONE);
    assert!(refusal(fs.ok(adopt(known, &all))).contains("is known"), "once is enough");
    // It ends as any other.
    fs.delete("/c/a");
    fs.delete("/c/b");
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    assert_eq!(query::get_block(&fs.store, lost.id).unwrap(), None);
}

#[test]
fn the_crc_of_a_parity_that_nobody_has_is_recorded_when_it_is_made_again() {
    let mut fs = fs();
    let a = write(&mut fs, "/c/a", Some(5));
    let (handle, gs) = forgotten(&mut fs, &a);
    let parities = vec![None, Some(PARITY)];
    let command = Adopt { parities, ..adopt((handle, gs), &[a.reference()]) };
    assert_eq!(fs.ok(command), Outcome::Done);
    let parities = |fs: &Fs| query::group(&fs.store, handle).unwrap().unwrap().parities;
    assert_eq!(parities(&fs), [ParityRecord { len: PARITY.len, crc32c: 0 }, PARITY]);
    assert_eq!(parities(&fs)[0].known_crc(), None);
    let told = |gs, crc32c| {
        let units = vec![None, None, None, Some(crc32c), Some(9)];
        RecordUnitCrcs { blocks: vec![BlockCrcs { id: handle, gs, units }] }
    };
    fs.ok(told(GenerationStamp(gs.0 - 1), 8));
    assert_eq!(parities(&fs)[0].known_crc(), None, "of another stamp");
    for crc32c in [8, 10] {
        fs.ok(told(gs, crc32c));
        assert_eq!(parities(&fs), [ParityRecord { len: PARITY.len, crc32c: 8 }, PARITY]);
    }
}

#[test]
fn without_its_policy_a_group_is_taken_over_to_end() {
    let mut fs = fs();
    let a = write(&mut fs, "/c/a", Some(5));
    // The file was converted behind the moment that was restored.
    let plain = write(&mut fs, "/plain", Some(5));
    let known = forgotten(&mut fs, &a);
    assert_eq!(fs.ok(adopt(known, &[plain.reference()])), Outcome::Done);
    assert!(query::group(&fs.store, known.0).unwrap().unwrap().is_dissolving());
}

#[test]
fn what_does_not_agree_is_not_taken_over() {
    let mut fs = fs();
    let (a, b) = (write(&mut fs, "/c/a", Some(5)), write(&mut fs, "/c/b", Some(9)));
    let known = forgotten(&mut fs, &a);
    let of = adopt(known, &[a.reference()]);
    let with = |member: BlockRef| adopt(known, &[member]);
    let a_ref = a.reference();
    let unknown = BlockRef { id: BlockId(a.id.0 + 1000), ..a_ref };
    let next = BlockId(known.0.0 + 16);
    for (wrong, why) in [
        (with(BlockRef { len: MIB - 1, ..a_ref }), "do not fit together"),
        (with(BlockRef { gs: GenerationStamp(a.gs.0 - 1), ..a_ref }), "is not as the group"),
        (with(b.reference()), "is not as the group has it"),
        (with(unknown), "cannot be taken over"),
        (with(BlockRef { id: BlockId((1 << 60) + 1), ..a_ref }), "cannot be taken over"),
        (
            adopt(known, &[a_ref, BlockRef { id: BlockId((1 << 60) + 1), ..a_ref }]),
            "cannot be taken over as a container",
        ),
        (adopt(known, &[a_ref, a_ref]), "do not fit together"),
        (Adopt { handle: next, ..of.clone() }, "is still to be given out"),
        (Adopt { gs: GenerationStamp(known.1.0 + 9), ..of.clone() }, "is still to be given out"),
        (Adopt { policy: PolicyId(1), ..of.clone() }, "no policy"),
        (Adopt { members: of.members[..2].to_vec(), ..of.clone() }, "no policy"),
        (Adopt { parities: vec![None, None], ..of.clone() }, "do not fit together"),
    ] {
        let told = refusal(fs.ok(wrong.clone()));
        assert!(told.contains(why), "{wrong:?}: {told}");
        assert!(fs.effects.is_empty());
    }
    // A member of an open attempt may be in its group next.
    let (open, _) = numbers(&mut fs, std::slice::from_ref(&a));
    assert!(refusal(fs.ok(of.clone())).contains("is in attempt"));
    fs.ok(Abandon { handle: open });
    assert_eq!(fs.ok(of), Outcome::Done);
}

#[test]
fn a_member_that_the_namespace_has_otherwise_does_not_cost_the_others() {
    let mut fs = fs();
    let (a, b) = (write(&mut fs, "/c/a", Some(5)), write(&mut fs, "/c/b", Some(5)));
    let known = forgotten(&mut fs, &a);
    // Something was appended behind the moment that was restored.
    let longer = BlockRef { len: b.len + 7, ..b.reference() };
    let mut command = adopt(known, &[longer, a.reference()]);
    command.data_len = longer.len;
    assert_eq!(fs.ok(command), Outcome::Done);
    let handle = known.0;
    let effects = [Effect::CopiesChanged { id: a.id }, Effect::GroupAdopted { handle }];
    assert_eq!(fs.effects, effects);
    assert_eq!(get(&fs, b.id), b, "it stays as it is");
    assert_eq!(get(&fs, a.id).group.map(|of| (of.handle, of.slot)), Some((handle, 1)));
    let group = query::group(&fs.store, handle).unwrap().unwrap();
    assert!(group.is_dissolving(), "the other one is to have copies of its own");
    let members: Vec<_> = group.members().map(|(_, of)| (of.id, of.len, of.live)).collect();
    assert_eq!(members, [(b.id, longer.len, false), (a.id, a.len, true)]);
    // It ends, and the file of the one that was not in it has it still.
    assert_eq!(fs.ok(Dissolve { handle }), Outcome::Done);
    assert_eq!(get(&fs, b.id), b);
    assert_eq!(get(&fs, a.id).group, None);
}

#[test]
fn an_older_group_gives_its_members_up_and_a_newer_one_does_not() {
    let mut fs = fs();
    let (a, b) = (write(&mut fs, "/c/a", Some(5)), write(&mut fs, "/c/b", Some(5)));
    let before = forgotten(&mut fs, &a);
    let old = numbers(&mut fs, &[a.clone(), b.clone()]);
    let sum = |slot| MemberSum { slot, crc32c: 5, sums_crc32c: 6 };
    let members = vec![sum(0), sum(1)];
    let parities = vec![PARITY; 2];
    fs.ok(Form { handle: old.0, gs: old.1, members, parities, checksum: CHECKSUM });
    let other = write(&mut fs, "/c/other", Some(5));
    let newer = forgotten(&mut fs, &other);
    assert!(refusal(fs.ok(adopt(before, &[a.reference()]))).contains("is in group"));
    let alone = write(&mut fs, "/c/alone", Some(5));
    assert_eq!(fs.ok(adopt(before, &[a.reference(), alone.reference()])), Outcome::Done);
    assert_eq!(get(&fs, a.id).group.map(|of| of.handle), Some(old.0), "the newer one keeps it");
    assert_eq!(get(&fs, alone.id).group.map(|of| of.handle), Some(before.0));
    assert_eq!(fs.ok(adopt(newer, &[a.reference()])), Outcome::Done);
    let group = |fs: &Fs, handle| query::group(&fs.store, handle).unwrap().unwrap();
    assert!(group(&fs, old.0).is_dissolving(), "one of its members is left");
    assert_eq!(get(&fs, a.id).group.map(|of| of.handle), Some(newer.0));
    assert_eq!(get(&fs, b.id).group.map(|of| of.handle), Some(old.0));
    let newest = forgotten(&mut fs, &other);
    assert_eq!(fs.ok(adopt(newest, &[a.reference(), b.reference()])), Outcome::Done);
    for handle in [old.0, newer.0] {
        assert_eq!(group(&fs, handle).state, GroupState::Superseded { by: newest.0 });
    }
    let found = query::get_blocks(&fs.store, &root(), "/c/a", 0, u64::MAX, 0).unwrap();
    assert_eq!(found.blocks[0].1.group.map(|of| of.handle), Some(newest.0));
}
