//! Contiguous groups with others between the steps: whoever changes a member meanwhile has won, and nothing is formed of
//! what is not there any more.

use crate::host::{HOLDER, Host, run};
use cairn_master::complete::{self, Complete};
use cairn_master::contiguous::choose::{self, Rules};
use cairn_master::contiguous::renew::{self, DeadRules, Renewal};
use cairn_master::contiguous::{self, EncodedGroup, Formation, Made, MadeMember, Proposal};
use cairn_master::{Lookup, Op, follow_up};
use cairn_namespace::group::{ChecksumShape, ParityRecord};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::ec::{EnableEcPolicy, SetEcPolicy};
use cairn_namespace::ops::group::MemberSum;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::{Block, BlockRef, Caller, query};
use cairn_redundancy::{BlockLookup, BlockRef as Replica, Command, EncodeMember, EncodeOrder};
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;

const RULES: Rules = Rules { pays: 0.6, proposals_max: 4 };
const LEN: u64 = 1 << 20;
const PARITY: ParityRecord = ParityRecord { len: LEN + 100, crc32c: 4711 };

/// A directory whose files go into groups of RS-3-2.
fn host() -> Host {
    let host = Host::new();
    let name = "RS-3-2-contiguous".to_string();
    host.force(EnableEcPolicy { name: name.clone() });
    let mode = 0o755.into();
    host.force(Mkdirs { path: "/d".to_string(), mode, create_parent: true });
    host.force(SetEcPolicy { path: "/d".to_string(), policy: Some(name) });
    host
}

/// A closed file of a few whole blocks, each on two nodes: the first on `first` and the one after that.
fn file(host: &Host, path: &str, (first, blocks): (usize, usize)) -> Vec<Block> {
    let file = host.create(path);
    let mut all: Vec<Block> = Vec::new();
    let mut previous: Option<BlockRef> = None;
    for at in first..first + blocks {
        let block = host.add(file, previous).unwrap();
        let done = BlockRef { len: LEN, ..block.reference() };
        for node in [at, at + 1] {
            host.report_sum(node, done, Some(at as u32));
        }
        previous = Some(done);
        all.push(block);
    }
    let wanted = Complete {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last: previous,
    };
    assert_eq!(run(complete::complete(host, &Caller::system(), None, &wanted)), Ok(true));
    all.iter().map(|block| host.block(block).unwrap()).collect()
}

/// A closed file of one block of that length, on two nodes.
fn short_file(host: &Host, path: &str, node: usize, len: u64) {
    let file = host.create(path);
    let block = host.add(file, None).unwrap();
    let done = BlockRef { len, ..block.reference() };
    for at in [node, node + 1] {
        host.report_sum(at, done, Some(4711));
    }
    let holder = HOLDER.to_string();
    let wanted = Complete { path: String::new(), file: Some(file), holder, last: Some(done) };
    assert_eq!(run(complete::complete(host, &Caller::system(), None, &wanted)), Ok(true));
}

fn choose(host: &Host) -> Vec<Proposal> {
    host.look(|look| choose::choose(look, &RULES, &mut None)).unwrap()
}

/// Begins the one attempt there can be. Returns what its encoder is told, and who that is.
fn begin(host: &Host) -> (usize, EncodeOrder) {
    let [proposal] = &choose(host)[..] else { panic!("one group can be made") };
    run(contiguous::begin(host, proposal.clone())).unwrap().unwrap();
    told(host).expect("somebody is to encode")
}

fn told(host: &Host) -> Option<(usize, EncodeOrder)> {
    host.pass(1000).into_iter().find_map(|(node, command)| match command {
        Command::Encode(orders) => Some((node, orders[0].clone())),
        _ => None,
    })
}

/// Has the parities be written where they are to be.
fn report_parities(host: &Host, order: &EncodeOrder) {
    let (handle, gs) = (order.group.id, order.group.gs);
    for (storage, slot) in &order.targets {
        let block = BlockRef { id: handle.internal(*slot), gs, len: PARITY.len };
        host.report_sum(host.node_of(*storage), block, Some(PARITY.crc32c));
    }
}

/// What an encoder tells that has done as it was told.
fn encoded(host: &Host, order: &EncodeOrder) -> EncodedGroup {
    let member = |member: &EncodeMember| MadeMember {
        sum: MemberSum { slot: member.slot.0, crc32c: member.crc32c, sums_crc32c: 1 },
        storage: format!("DS-{}", host.node_of(member.storage)),
    };
    let made = Made {
        members: order.members.iter().map(member).collect(),
        parities: order.targets.iter().map(|(_, slot)| (*slot, PARITY)).collect(),
        checksum: ChecksumShape { kind: 2, bytes_per_checksum: 512 },
    };
    EncodedGroup { handle: order.group.id, gs: order.group.gs, outcome: Ok(made) }
}

/// Does both.
fn encode(host: &Host, order: &EncodeOrder) -> EncodedGroup {
    report_parities(host, order);
    encoded(host, order)
}

fn form(host: &Host, encoder: usize, encoded: &EncodedGroup) -> Formation {
    run(contiguous::form(host, host.handle(encoder), encoded)).unwrap()
}

/// A group of three blocks of one file. Returns the blocks and what was ordered.
fn formed(host: &Host) -> (Vec<Block>, EncodeOrder) {
    let blocks = file(host, "/d/f", (0, 3));
    let (encoder, order) = begin(host);
    assert_eq!(form(host, encoder, &encode(host, &order)), Formation::Formed);
    (blocks, order)
}

/// Lets all be deleted that is ordered. Returns the blocks of which something was.
fn delete_all(host: &Host) -> BTreeSet<BlockId> {
    let mut gone = BTreeSet::new();
    for _ in 0..10 {
        for (node, command) in host.pass(3000) {
            let Command::Invalidate(deleted) = command else { continue };
            for block in deleted {
                gone.insert(block.id);
                host.delete(node, block);
            }
        }
    }
    gone
}

/// Places of a replica or parity that are not to be deleted.
fn places(host: &Host, id: BlockId) -> usize {
    let locations = host.state.borrow().cluster.locations(id);
    locations.into_iter().filter(|at| !id.is_parity() || at.unit == id.unit()).count()
}

fn is_known(host: &Host, handle: BlockId) -> bool {
    query::group(&host.state.borrow().store, handle).unwrap().is_some()
}

fn append(host: &Host) {
    host.force(Append {
        path: "/d/f".to_string(),
        holder: HOLDER.to_string(),
        client_machine: String::new(),
        new_block: false,
        replicas: LastBlocks {
            penultimate_min_replicated: true,
            last_min_replicated: true,
            last_has_locations: true,
            seen: None,
        },
    });
}

fn delete(host: &Host, path: &str) {
    host.force(Delete { path: path.to_string(), recursive: false });
}

/// Does what follows from entries.
fn follow(host: &Host) {
    let due = std::mem::take(&mut *host.due.borrow_mut());
    run(follow_up::submit(host, due)).unwrap();
}

#[test]
fn blocks_of_a_file_become_a_group_and_keep_the_replicas_that_were_read() {
    let host = host();
    let blocks = file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    assert!(choose(&host).is_empty(), "none of them is in two attempts");
    let encoded = encode(&host, &order);
    assert_eq!(form(&host, encoder, &encoded), Formation::Formed);
    for block in &blocks {
        let facts = Lookup::new(&host.state.borrow().store).block(block.id).unwrap();
        assert_eq!(facts.group.map(|(handle, _)| handle), Some(order.group.id));
    }
    assert_eq!(delete_all(&host), blocks.iter().map(|block| block.id).collect());
    for member in &order.members {
        let left = host.state.borrow().cluster.locations(member.block.id);
        let left: Vec<_> = left.into_iter().map(|at| at.storage).collect();
        assert_eq!(left, [member.storage]);
    }
    assert_eq!(form(&host, encoder, &encoded), Formation::Over, "told again");
}

#[test]
fn an_append_before_a_group_is_begun_has_won() {
    let host = host();
    let last = file(&host, "/d/f", (0, 3)).pop().unwrap();
    let proposal = choose(&host).remove(0);
    host.then(append);
    assert!(run(contiguous::begin(&host, proposal)).unwrap().is_err());
    assert_eq!(told(&host), None);
    assert_eq!(host.block(&last).unwrap().group, None);
}

#[test]
fn an_append_before_a_group_is_formed_has_won() {
    let host = host();
    let last = file(&host, "/d/f", (0, 3)).pop().unwrap();
    let (encoder, order) = begin(&host);
    let encoded = encode(&host, &order);
    host.then(append);
    assert!(matches!(form(&host, encoder, &encoded), Formation::Abandoned(_)));
    assert!(!is_known(&host, order.group.id));
    assert_eq!(places(&host, order.group.id.internal(UnitIndex(3))), 0);
    assert_eq!(host.block(&last).unwrap().group, None);
}

#[test]
fn a_file_that_is_deleted_meanwhile_is_in_no_group() {
    let host = host();
    file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    let encoded = encode(&host, &order);
    host.then(|host| delete(host, "/d/f"));
    assert!(matches!(form(&host, encoder, &encoded), Formation::Abandoned(_)));
    assert!(!is_known(&host, order.group.id));
}

#[test]
fn a_replica_that_is_reported_anew_between_look_and_entry_is_not_proven() {
    let host = host();
    let blocks = file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    let encoded = encode(&host, &order);
    let kept = order.members[1];
    let node = host.node_of(kept.storage);
    assert_ne!(node, encoder);
    let on_node = [0, 1].map(|at| blocks[at].reference());
    host.then(move |host| host.register(node, &on_node));
    assert_eq!(form(&host, encoder, &encoded), Formation::Formed);
    let others = [0, 2].map(|at| blocks[at].id);
    assert_eq!(delete_all(&host), BTreeSet::from(others), "what is on that disk nobody knows");
    assert_eq!(places(&host, kept.block.id), 2);
}

#[test]
fn what_an_encoder_tells_after_the_attempt_has_ended_is_not_heard() {
    let host = host();
    let blocks = file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    let encoded = encode(&host, &order);
    run(contiguous::abandon(&host, order.group.id)).unwrap();
    assert_eq!(form(&host, encoder, &encoded), Formation::Over);
    assert!(blocks.iter().all(|block| host.block(block).unwrap().group.is_none()));
    for (_, slot) in &order.targets {
        assert_eq!(places(&host, order.group.id.internal(*slot)), 0);
    }
    // Another attempt has another handle and stamp.
    host.pass(600_000);
    host.pass(1000);
    let (_, next) = begin(&host);
    assert!(next.group.id > order.group.id && next.group.gs > order.group.gs);
}

#[test]
fn a_start_abandons_all_attempts_and_hears_nothing_of_them() {
    let host = host();
    file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    host.restart();
    let encoded = encode(&host, &order);
    assert_eq!(form(&host, encoder, &encoded), Formation::Over);
    assert!(is_known(&host, order.group.id), "its parities are wanted until it is abandoned");
    let abandoned = run(contiguous::abandon_failed(&host)).unwrap();
    assert_eq!(abandoned.len(), 1);
    assert!(!is_known(&host, order.group.id));
    assert_eq!(form(&host, encoder, &encoded), Formation::Over);
    assert_eq!(run(contiguous::abandon_failed(&host)), Ok(Vec::new()));
}

#[test]
fn an_attempt_ends_with_its_encoder() {
    let host = host();
    file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    let encoded = encode(&host, &order);
    host.register(encoder, &[]);
    assert_eq!(form(&host, encoder, &encoded), Formation::Over);
    assert_eq!(run(contiguous::abandon_failed(&host)).unwrap().len(), 1);
    assert!(!is_known(&host, order.group.id));
}

#[test]
fn parities_that_are_not_reported_yet_are_awaited() {
    let host = host();
    file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    let encoded = encoded(&host, &order);
    assert_eq!(form(&host, encoder, &encoded), Formation::Awaited);
    report_parities(&host, &order);
    assert_eq!(form(&host, encoder, &encoded), Formation::Formed);
}

#[test]
fn an_encoder_that_fails_ends_its_attempt_and_nobody_elses() {
    let host = host();
    file(&host, "/d/f", (0, 3));
    let (encoder, order) = begin(&host);
    let outcome = Err("a disk is full".to_string());
    let failed = EncodedGroup { handle: order.group.id, gs: order.group.gs, outcome };
    let other = (encoder + 1) % 8;
    assert_eq!(form(&host, other, &failed), Formation::Over);
    assert!(is_known(&host, order.group.id));
    assert!(matches!(form(&host, encoder, &failed), Formation::Abandoned(_)));
    assert!(!is_known(&host, order.group.id));
    assert!(choose(&host).is_empty(), "its members rest");
}

#[test]
fn a_group_ends_when_no_file_has_a_member() {
    let host = host();
    let (blocks, order) = formed(&host);
    delete(&host, "/d/f");
    assert!(is_known(&host, order.group.id));
    assert!(blocks.iter().all(|block| places(&host, block.id) > 0), "tombstones stay");
    follow(&host);
    assert!(!is_known(&host, order.group.id));
    assert!(blocks.iter().all(|block| places(&host, block.id) == 0));
}

#[test]
fn a_member_of_a_deleted_file_stays_for_the_others() {
    let host = host();
    let of_first = file(&host, "/d/f", (0, 2));
    let of_second = file(&host, "/d/g", (2, 1));
    let (encoder, order) = begin(&host);
    assert_eq!(form(&host, encoder, &encode(&host, &order)), Formation::Formed);
    delete(&host, "/d/g");
    follow(&host);
    delete_all(&host);
    assert!(is_known(&host, order.group.id));
    assert!(of_first.iter().chain(&of_second).all(|block| places(&host, block.id) == 1));
}

#[test]
fn a_group_that_is_dissolved_gives_its_members_their_copies_first() {
    let host = host();
    let (blocks, order) = formed(&host);
    delete_all(&host);
    assert!(blocks.iter().all(|block| places(&host, block.id) == 1));
    assert_eq!(run(contiguous::dissolve(&host, order.group.id)), Ok(Ok(())));
    assert_eq!(run(contiguous::end_unneeded(&host, None)), Ok(None));
    assert!(is_known(&host, order.group.id), "they have one copy each");
    for _ in 0..10 {
        for (_, command) in host.pass(3000) {
            let Command::Transfer(copies) = command else { continue };
            for copy in copies {
                copy.targets.iter().for_each(|target| host.arrive(*target, copy.block));
            }
        }
    }
    assert!(blocks.iter().all(|block| places(&host, block.id) == 2));
    assert_eq!(run(contiguous::end_unneeded(&host, None)), Ok(None));
    assert!(!is_known(&host, order.group.id));
    assert!(blocks.iter().all(|block| host.block(block).unwrap().group.is_none()));
    assert_eq!(places(&host, order.group.id.internal(UnitIndex(4))), 0);
}

#[test]
fn a_group_is_made_only_where_it_costs_less_than_copies() {
    let rules = Rules { pays: 0.6, proposals_max: 1 };
    assert!(rules.pays(&[5, 5, 5], 2), "5/3 of the bytes");
    assert!(!rules.pays(&[5, 5], 2), "twice the bytes");
    assert!(!rules.pays(&[9, 1, 1], 2), "parities are as long as the longest");
    assert!(rules.pays(&[5, 5, 5, 5], 3) && !rules.pays(&[5, 5, 5], 3));
    let always = Rules { pays: f64::INFINITY, ..rules };
    assert!(always.pays(&[5], 4) && !always.pays(&[], 4));
    let host = host();
    file(&host, "/d/f", (0, 2));
    assert!(choose(&host).is_empty());
}

#[test]
fn short_files_of_a_directory_are_grouped_by_their_lengths() {
    const FILES: usize = 700;
    let host = host();
    let mut random = 1_u64;
    let mut sum = 0;
    for file in 0..FILES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Sixteen octaves, as many files in each.
        let len = f64::exp2(4.0 + (random >> 33) as f64 / f64::exp2(31.0) * 16.0) as u64;
        short_file(&host, &format!("/d/{file}"), file % 7, len);
        sum += len;
    }
    // More than one look goes over, and than one look may propose.
    let (mut after, mut begun, mut grouped, mut stored) = (None, 0, 0, 0);
    for _ in 0..1000 {
        let proposals = host.look(|look| choose::choose(look, &RULES, &mut after)).unwrap();
        if begun == 0 && after.is_none() && proposals.is_empty() {
            break;
        }
        begun = if after.is_none() { 0 } else { begun + proposals.len() };
        for proposal in proposals {
            let lens: Vec<u64> = proposal.command.members.iter().map(|of| of.len).collect();
            assert!(RULES.pays(&lens, 2), "{lens:?}");
            grouped += lens.iter().sum::<u64>();
            stored += lens.iter().sum::<u64>() + 2 * lens.iter().max().unwrap();
            run(contiguous::begin(&host, proposal)).unwrap().unwrap();
            let (encoder, order) = told(&host).expect("somebody is to encode");
            let formation = form(&host, encoder, &encode(&host, &order));
            assert_eq!(formation, Formation::Formed);
        }
    }
    let of_all = |bytes: u64| bytes as f64 / sum as f64;
    assert!(of_all(grouped) > 0.95, "{} of the bytes", of_all(grouped));
    assert!(stored as f64 / (grouped as f64) < 1.75);
}

fn renewals(host: &Host) -> Vec<Renewal> {
    let rules = DeadRules { share_max: 0.25, most: 4 };
    host.look(|look| renew::choose(look, &rules, &mut None)).unwrap()
}

#[test]
fn what_is_left_of_a_group_with_dead_members_goes_into_another() {
    let host = host();
    let of_first = file(&host, "/d/f", (0, 2));
    let of_second = file(&host, "/d/g", (2, 1));
    let (encoder, order) = begin(&host);
    assert_eq!(form(&host, encoder, &encode(&host, &order)), Formation::Formed);
    assert!(renewals(&host).is_empty());
    delete(&host, "/d/g");
    follow(&host);
    assert!(renewals(&host).is_empty(), "its surplus goes first");
    delete_all(&host);
    let [Renewal::Renew(proposal)] = &renewals(&host)[..] else { panic!("one is to be made anew") };
    assert_eq!(proposal.command.supersedes, [order.group.id]);
    run(contiguous::begin(&host, proposal.clone())).unwrap().unwrap();
    assert!(renewals(&host).is_empty(), "it is being made");
    let (encoder, anew) = told(&host).expect("somebody is to encode");
    let read: Vec<BlockId> = anew.members.iter().map(|member| member.block.id).collect();
    assert_eq!(read, of_first.iter().map(|block| block.id).collect::<Vec<_>>());
    assert_eq!(form(&host, encoder, &encode(&host, &anew)), Formation::Formed);
    assert!(is_known(&host, order.group.id), "it is needed until the other is seen to be whole");
    assert_eq!(run(contiguous::end_unneeded(&host, None)), Ok(None));
    assert!(!is_known(&host, order.group.id));
    delete_all(&host);
    assert!(of_second.iter().all(|block| places(&host, block.id) == 0));
    assert!(of_first.iter().all(|block| places(&host, block.id) == 1));
    for slot in 3..5 {
        assert_eq!(places(&host, order.group.id.internal(UnitIndex(slot))), 0);
        assert_eq!(places(&host, anew.group.id.internal(UnitIndex(slot))), 1);
    }
    assert!(renewals(&host).is_empty());
}

#[test]
fn a_group_keeps_what_is_dead_until_the_one_that_takes_its_place_is_whole() {
    let host = host();
    file(&host, "/d/f", (0, 2));
    file(&host, "/d/g", (2, 1));
    let (encoder, order) = begin(&host);
    assert_eq!(form(&host, encoder, &encode(&host, &order)), Formation::Formed);
    delete(&host, "/d/g");
    follow(&host);
    delete_all(&host);
    let [Renewal::Renew(proposal)] = &renewals(&host)[..] else { panic!("one is to be made anew") };
    run(contiguous::begin(&host, proposal.clone())).unwrap().unwrap();
    let (encoder, anew) = told(&host).expect("somebody is to encode");
    assert_eq!(form(&host, encoder, &encode(&host, &anew)), Formation::Formed);
    let (storage, slot) = anew.targets[0];
    let (handle, gs) = (anew.group.id, anew.group.gs);
    let parity = Replica { id: handle.internal(slot), gs, len: PARITY.len };
    host.delete(host.node_of(storage), parity);
    assert_eq!(run(contiguous::end_unneeded(&host, None)), Ok(None));
    assert!(is_known(&host, order.group.id));
}

#[test]
fn the_last_of_a_group_gets_its_copies_again() {
    let host = host();
    let of_first = file(&host, "/d/f", (0, 1));
    file(&host, "/d/g", (1, 2));
    let (encoder, order) = begin(&host);
    assert_eq!(form(&host, encoder, &encode(&host, &order)), Formation::Formed);
    delete_all(&host);
    delete(&host, "/d/g");
    follow(&host);
    let [Renewal::Dissolve(handle)] = renewals(&host)[..] else { panic!("it is to be dissolved") };
    assert_eq!(handle, order.group.id);
    assert_eq!(places(&host, of_first[0].id), 1);
}

#[test]
fn datanodes_hear_of_what_no_file_has_once_in_a_life() {
    let host = host();
    file(&host, "/d/f", (0, 2));
    let dead = file(&host, "/d/g", (2, 1)).remove(0);
    let (encoder, order) = begin(&host);
    assert_eq!(form(&host, encoder, &encode(&host, &order)), Formation::Formed);
    delete_all(&host);
    let retired = |host: &Host| -> Vec<(usize, BlockId)> {
        let told = host.pass(1000).into_iter();
        told.flat_map(|(node, command)| match command {
            Command::Retire(blocks) => blocks.iter().map(|block| (node, block.id)).collect(),
            _ => Vec::new(),
        })
        .collect()
    };
    assert_eq!(retired(&host), []);
    delete(&host, "/d/g");
    follow(&host);
    let at = order.members.iter().find(|member| member.block.id == dead.id).unwrap().storage;
    assert_eq!(retired(&host), [(host.node_of(at), dead.id)]);
    assert_eq!(run(renew::tell_retired(&host, None)), Ok(None));
    assert_eq!(retired(&host), [], "it knows");
}
