//! What a restored namespace takes over of containers that DataNodes have.

use crate::packs::{
    Begun, POLICY, SHAPE, begun, find, fs, group, packed, refusal, seal, state, wanted, write,
};
use crate::support::Fs;
use cairn_namespace::check::check;
use cairn_namespace::container::ContainerState;
use cairn_namespace::group::{GroupState, ParityRecord};
use cairn_namespace::ops::adopt::{Adopt, AdoptedMember};
use cairn_namespace::ops::adopt_container::AdoptContainer;
use cairn_namespace::ops::adopt_packed::{AdoptPacked, AdoptedBlock};
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::group::{Abandon, BeginEncode, NewMember};
use cairn_namespace::ops::pack::{AbandonPack, EndPack};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::{Block, Effect, Outcome, PackedIn, query};
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, Redundancy};

/// The numbers of a container that nobody knows any more.
fn forgotten(fs: &mut Fs, block: &Block) -> Begun {
    let (container, gs) = begun(fs, std::slice::from_ref(block));
    assert_eq!(fs.ok(AbandonPack { container }), Outcome::Flag(true));
    (container, gs)
}

fn index(known: Begun, blocks: &[Block]) -> PackIndex {
    let mut index = PackIndex::new(known, SHAPE.kind, SHAPE.bytes_per_checksum).unwrap();
    for (slot, block) in (0..).zip(blocks) {
        index.push(slot, (block.id, block.gs), (block.len as u32, 5)).unwrap();
    }
    index
}

/// Takes a group over with that container alone; `free` is a block that is in no group.
fn take_group(fs: &mut Fs, index: &PackIndex, free: &Block) -> BlockId {
    let Block { id, gs, len, .. } = *free;
    let members = vec![NewMember { id, gs, len, crc32c: 5 }];
    let begin = BeginEncode { policy: POLICY, members, supersedes: Vec::new() };
    let Outcome::EncodeBegun { handle, gs } = fs.ok(begin) else { panic!() };
    fs.ok(Abandon { handle });
    let len = index.container_len();
    let (id, of) = (index.container, index.gs);
    let member = AdoptedMember { id, gs: of, len, crc32c: 9, sums_crc32c: 6 };
    let adopted = fs.ok(Adopt {
        handle,
        gs,
        policy: POLICY,
        members: vec![Some(member), None, None],
        data_len: len,
        parities: vec![Some(ParityRecord { len: len + 100, crc32c: 7 }); 2],
        checksum: SHAPE,
    });
    assert_eq!(adopted, Outcome::Done);
    let effects = [Effect::CopiesChanged { id }, Effect::GroupAdopted { handle }];
    assert_eq!(fs.effects, effects);
    assert_eq!(state(fs, id), Some(ContainerState::Found));
    handle
}

fn take(index: &PackIndex) -> AdoptPacked {
    let of = |packed: &cairn_stripe::pack::Packed| AdoptedBlock {
        slot: packed.slot,
        offset: packed.offset,
        id: packed.id,
        gs: packed.gs,
        len: packed.len.into(),
        crc32c: packed.crc32c,
    };
    let blocks: Vec<_> = index.packed().iter().map(of).collect();
    let all = Some((blocks.len() as u64, blocks.iter().map(|of| of.len).sum()));
    AdoptPacked { container: index.container, gs: index.gs, storage_policy: 0, blocks, all }
}

fn is_whole(fs: &Fs) {
    check(&fs.store, &mut |wrong| panic!("{wrong}")).unwrap();
}

#[test]
fn what_agrees_with_the_index_of_a_container_is_packed_there_and_nothing_else() {
    let mut fs = fs();
    let names = ["/c/a", "/c/b", "/c/later", "/c/changed", "/c/other"];
    let [a, b, later, changed, other] = names.map(|path| write(&mut fs, path, 1000));
    let known = forgotten(&mut fs, &a);
    let of_index = index(
        known,
        &[
            a.clone(),
            later.clone(),
            Block { gs: GenerationStamp(changed.gs.0 - 1), ..changed.clone() },
            Block { len: 999, ..other.clone() },
            b.clone(),
        ],
    );
    // The namespace knows nothing of it.
    fs.delete("/c/later");
    fs.ok(Purge { limit: 100 });
    let handle = take_group(&mut fs, &of_index, &other);
    let mut command = take(&of_index);
    // Its bytes were others.
    command.blocks[4].crc32c = 6;
    assert_eq!(fs.ok(command.clone()), Outcome::Flag(true));
    assert_eq!(fs.effects, [Effect::Packed { id: a.id }]);
    let place = PackedIn { container: known.0, slot: 0, offset: 0 };
    assert_eq!(find(&fs, a.id).unwrap().packed, Some(place));
    for plain in [b, changed, other] {
        assert_eq!(find(&fs, plain.id), Some(plain));
    }
    let of = query::container(&fs.store, known.0).unwrap().unwrap();
    assert_eq!((of.state, of.packed, of.packed_len), (ContainerState::Packed, 5, 4999));
    assert_eq!((of.live, of.live_len, of.dead_len()), (1, 1000, 3999));
    assert!(refusal(fs.ok(command)).contains("none that was found"));
    is_whole(&fs);
    // It ends as any other.
    fs.delete("/c/a");
    fs.ok(Purge { limit: 100 });
    assert_eq!(fs.ok(EndPack { container: known.0 }), Outcome::Done);
    assert!(!query::group(&fs.store, handle).unwrap().unwrap().live_members().any(|_| true));
    is_whole(&fs);
}

#[test]
fn steps_go_on_and_what_is_taken_already_stays() {
    let mut fs = fs();
    let [a, b] = ["/c/a", "/c/b"].map(|path| write(&mut fs, path, 1000));
    let known = forgotten(&mut fs, &a);
    let of_index = index(known, &[a.clone(), b.clone()]);
    take_group(&mut fs, &of_index, &b);
    let whole = take(&of_index);
    let first = AdoptPacked { blocks: whole.blocks[..1].to_vec(), all: None, ..whole.clone() };
    assert_eq!(fs.ok(first), Outcome::Flag(false));
    assert_eq!(state(&fs, known.0), Some(ContainerState::Found));
    is_whole(&fs);
    assert_eq!(fs.ok(whole), Outcome::Flag(true));
    assert_eq!(fs.effects, [Effect::Packed { id: b.id }]);
    is_whole(&fs);
}

#[test]
fn a_block_goes_into_a_newer_container_and_into_no_older_one() {
    let mut fs = fs();
    let [a, free] = ["/c/a", "/c/free"].map(|path| write(&mut fs, path, 1000));
    let older = forgotten(&mut fs, &a);
    let (between, _) = packed(&mut fs, std::slice::from_ref(&a));
    let newer = forgotten(&mut fs, &free);
    let of_older = index(older, std::slice::from_ref(&a));
    take_group(&mut fs, &of_older, &free);
    fs.ok(take(&of_older));
    assert_eq!(find(&fs, a.id).unwrap().packed.map(|at| at.container), Some(between.0));
    let of_newer = index(newer, std::slice::from_ref(&a));
    take_group(&mut fs, &of_newer, &free);
    fs.ok(take(&of_newer));
    assert_eq!(find(&fs, a.id).unwrap().packed.map(|at| at.container), Some(newer.0));
    let of = query::container(&fs.store, between.0).unwrap().unwrap();
    assert_eq!((of.live, of.moved_to), (0, vec![newer.0]));
    is_whole(&fs);
}

#[test]
fn a_block_of_a_file_that_wants_copies_is_to_be_plain_again() {
    let mut fs = fs();
    let [a, free] = ["/c/a", "/c/free"].map(|path| write(&mut fs, path, 1000));
    let known = forgotten(&mut fs, &a);
    fs.ok(SetReplication { path: "/c/a".into(), replication: 5 });
    let of_index = index(known, std::slice::from_ref(&a));
    take_group(&mut fs, &of_index, &free);
    fs.ok(take(&of_index));
    assert!(find(&fs, a.id).unwrap().packed.is_some());
    assert!(query::is_unpacking(&fs.store, a.id).unwrap());
}

#[test]
fn a_container_that_is_known_or_sealed_is_not_taken_over() {
    let mut fs = fs();
    let [a, free] = ["/c/a", "/c/free"].map(|path| write(&mut fs, path, 1000));
    let known = begun(&mut fs, std::slice::from_ref(&a));
    fs.ok(seal(known, std::slice::from_ref(&a), &[]));
    let of_index = index(known, std::slice::from_ref(&a));
    assert!(refusal(fs.ok(take(&of_index))).contains("none that was found"));
    let own = member(&find(&fs, known.0).unwrap(), 9);
    let adopt = adopt_of(&mut fs, own, &free);
    assert!(refusal(fs.ok(adopt.clone())).contains("is known"));
    // Given up, it is one that nobody knows.
    assert_eq!(fs.ok(AbandonPack { container: known.0 }), Outcome::Flag(true));
    assert_eq!(fs.ok(adopt), Outcome::Done);
}

fn member(block: &Block, crc32c: u32) -> AdoptedMember {
    let Block { id, gs, len, .. } = *block;
    AdoptedMember { id, gs, len, crc32c, sums_crc32c: 6 }
}

/// What takes a group of that block over; `free` is one that is in no group.
fn adopt_of(fs: &mut Fs, member: AdoptedMember, free: &Block) -> Adopt {
    let Block { id, gs, len, .. } = *free;
    let members = vec![NewMember { id, gs, len, crc32c: 5 }];
    let attempt = BeginEncode { policy: POLICY, members, supersedes: Vec::new() };
    let Outcome::EncodeBegun { handle, gs } = fs.ok(attempt) else { panic!() };
    fs.ok(Abandon { handle });
    let len = member.len;
    Adopt {
        handle,
        gs,
        policy: POLICY,
        members: vec![Some(member), None, None],
        data_len: len,
        parities: vec![Some(ParityRecord { len: len + 100, crc32c: 7 }); 2],
        checksum: SHAPE,
    }
}

#[test]
fn a_container_in_which_blocks_are_packed_comes_into_a_newer_group() {
    let mut fs = fs();
    let [a, free] = ["/c/a", "/c/free"].map(|path| write(&mut fs, path, 1000));
    let (known, older) = packed(&mut fs, std::slice::from_ref(&a));
    let own = member(&find(&fs, known.0).unwrap(), 9);
    let adopt = adopt_of(&mut fs, own, &free);
    let handle = adopt.handle;
    assert_eq!(fs.ok(adopt), Outcome::Done);
    assert_eq!(find(&fs, known.0).unwrap().group.map(|of| of.handle), Some(handle));
    assert_eq!(state(&fs, known.0), Some(ContainerState::Packed), "what is in it is known");
    let state = |handle| query::group(&fs.store, handle).unwrap().unwrap().state;
    assert_eq!(state(handle), GroupState::Formed);
    assert_eq!(state(older), GroupState::Superseded { by: handle });
    is_whole(&fs);
}

#[test]
fn a_block_that_was_packed_comes_into_a_group_that_is_newer_than_its_container() {
    let mut fs = fs();
    let [a, free] = ["/c/a", "/c/free"].map(|path| write(&mut fs, path, 1000));
    let container = packed(&mut fs, std::slice::from_ref(&a)).0.0;
    let adopt = adopt_of(&mut fs, member(&a, 5), &free);
    let handle = adopt.handle;
    assert_eq!(fs.ok(adopt), Outcome::Done);
    assert_eq!(fs.effects, [Effect::Unpacked { id: a.id }, Effect::GroupAdopted { handle }]);
    let now = find(&fs, a.id).unwrap();
    assert_eq!((now.packed, now.group.map(|of| of.handle)), (None, Some(handle)));
    assert_eq!(query::container(&fs.store, container).unwrap().unwrap().live, 0);
    is_whole(&fs);
}

#[test]
fn a_container_without_a_group_is_taken_over_and_waits_for_one() {
    let mut fs = fs();
    let a = write(&mut fs, "/c/a", 1000);
    let known = forgotten(&mut fs, &a);
    let of_index = index(known, std::slice::from_ref(&a));
    let command = AdoptContainer {
        container: known.0,
        gs: known.1,
        len: of_index.container_len(),
        crc32c: 9,
        policy: POLICY,
        checksum: SHAPE,
    };
    let next = BlockId(known.0.0 + 1);
    for (wrong, why) in [
        (AdoptContainer { container: next, ..command.clone() }, "cannot be taken over"),
        (AdoptContainer { container: a.id, ..command.clone() }, "cannot be taken over"),
        (AdoptContainer { gs: GenerationStamp(known.1.0 + 9), ..command.clone() }, "cannot be"),
        (AdoptContainer { policy: PolicyId(1), ..command.clone() }, "no policy"),
    ] {
        assert!(refusal(fs.ok(wrong)).contains(why));
    }
    assert_eq!(fs.ok(command.clone()), Outcome::Done);
    assert_eq!(fs.effects, [Effect::ContainerAdopted { id: known.0 }]);
    assert_eq!(state(&fs, known.0), Some(ContainerState::Found));
    assert_eq!(wanted(&fs, known.0), Redundancy::Replicated(3));
    assert!(refusal(fs.ok(command)).contains("is known"));
    is_whole(&fs);
    assert_eq!(fs.ok(take(&of_index)), Outcome::Flag(true));
    assert_eq!(find(&fs, a.id).unwrap().packed.map(|at| at.container), Some(known.0));
    is_whole(&fs);
    // Another group than that which is lost.
    let waiting = query::waiting(&fs.store, u64::MAX, None, 10).unwrap();
    assert!(waiting.iter().any(|waiting| waiting.id == known.0));
    let handle = group(&mut fs, &[known.0]);
    assert_eq!(find(&fs, known.0).unwrap().group.map(|of| of.handle), Some(handle));
    is_whole(&fs);
}
