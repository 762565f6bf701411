//! Operations with others between their steps: what somebody has seen must hold when the command's turn comes.

use crate::host::{HOLDER, Host, run};
use cairn_master::complete::{self, Complete};
use cairn_master::{OpError, lease, pipeline};
use cairn_namespace::ops::add_block::AddBlock as AddBlockCommand;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::{BlockRef, BlockState, Caller, Command, Outcome};
use cairn_stripe::GenerationStamp;
use std::cell::RefCell;

#[test]
fn a_block_is_not_dropped_because_nobody_had_it_before_its_writer_flushed_it() {
    let host = Host::new();
    let file = host.create("/f");
    let block = host.add(file, None).unwrap();
    // After a restart nobody is known to have it, so that a release would drop it as empty.
    host.restart();
    let flush = Fsync {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last_len: Some(700),
    };
    host.then(|host| drop(host.force(flush)));
    assert_eq!(run(lease::release(&host, file)), Ok(false), "it must be recovered first");
    assert_eq!(*host.moved.borrow(), 1);
    let kept = host.block(&block).expect("it has bytes that somebody was told are safe");
    assert!(matches!(kept.state, BlockState::UnderRecovery { .. }));
}

#[test]
fn a_file_is_not_closed_over_a_block_that_was_added_meanwhile() {
    let host = Host::new();
    let file = host.create("/f");
    let first = host.add(file, None).unwrap();
    let done = BlockRef { len: 100, ..first.reference() };
    host.report(0, done);
    let second = AddBlockCommand {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        previous: Some(done),
        previous_crcs: Vec::new(),
        previous_min_replicated: true,
    };
    host.then(|host| drop(host.force(second)));
    let wanted = Complete {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last: Some(done),
    };
    let closed = run(complete::complete(&host, &Caller::system(), None, &wanted));
    assert!(matches!(closed, Err(OpError::Refused(_))), "{closed:?}");
    assert_eq!(*host.moved.borrow(), 1);
}

#[test]
fn a_call_that_meets_its_twin_gets_the_same_block_on_the_same_storages() {
    let host = Host::new();
    let file = host.create("/f");
    let twin = std::rc::Rc::new(RefCell::new(None));
    let told = twin.clone();
    host.then(move |host| *told.borrow_mut() = Some(host.add(file, None).unwrap()));
    let block = host.add(file, None).unwrap();
    assert_eq!(Some(&block), twin.borrow().as_ref());
    assert_eq!((*host.moved.borrow(), host.pipeline_len(&block)), (1, 2));
    let added = |command: &&Command| matches!(command, Command::AddBlock(_));
    assert_eq!(host.submitted.borrow().iter().filter(added).count(), 1);
}

#[test]
fn an_id_and_stamp_never_get_other_storages() {
    let host = Host::new();
    let file = host.create("/f");
    let first = host.add(file, None).unwrap();
    assert_eq!(host.add(file, None).unwrap(), first, "repeated");
    host.restart();
    // Nobody reports anything of it in time.
    let second = host.add(file, None).unwrap();
    assert!(second.id != first.id && second.gs > first.gs);
    assert_eq!((host.block(&first), host.pipeline_len(&second)), (None, 2));
    host.restart();
    // Its writer was told after all: a DataNode has it.
    host.report(1, second.reference());
    assert_eq!(host.add(file, None).unwrap(), second);
}

#[test]
fn a_block_that_is_reported_while_a_close_waits_ends_the_wait() {
    let host = Host::new();
    let file = host.create("/f");
    let block = host.add(file, None).unwrap();
    let done = BlockRef { len: 100, ..block.reference() };
    let wanted = Complete {
        path: String::new(),
        file: Some(file),
        holder: HOLDER.to_string(),
        last: Some(done),
    };
    let close = || run(complete::complete(&host, &Caller::system(), None, &wanted));
    assert_eq!(close(), Ok(false), "nobody has it");
    let committed = host.block(&block).unwrap();
    assert_eq!((committed.state, committed.len), (BlockState::Committed, 100));
    host.report(0, done);
    assert_eq!(close(), Ok(true));
    assert_eq!(host.block(&block).unwrap().state, BlockState::Complete);
}

/// All streams of a client have one name: that the file is written under it shows nothing.
#[test]
fn a_stream_with_an_older_stamp_than_its_block_is_refused() {
    let host = Host::new();
    let file = host.create("/f");
    let old = host.add(file, None).unwrap().reference();
    let stamp = |host: &Host, block: BlockRef| {
        let command = UpdateBlockForPipeline { holder: HOLDER.to_string(), block };
        match run(pipeline::new_stamp(host, &Caller::system(), None, command)) {
            Ok(Outcome::Stamp(gs)) => Ok(gs),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    let take_over = |old: BlockRef, gs: GenerationStamp| {
        let new = BlockRef { gs, ..old };
        UpdatePipeline { holder: HOLDER.to_string(), old, new }
    };
    let update = |host: &Host, command: UpdatePipeline| {
        run(pipeline::update(host, &Caller::system(), None, command, &[]))
    };
    let is_refused = |error: &OpError| matches!(error, OpError::Refused(_));
    let (first, second) = (stamp(&host, old).unwrap(), stamp(&host, old).unwrap());
    // Between a look and its turn another stream comes.
    let between = take_over(old, first);
    host.then(move |host| drop(host.force(between)));
    assert!(update(&host, take_over(old, second)).is_err_and(|error| is_refused(&error)));
    assert!(stamp(&host, old).is_err_and(|error| is_refused(&error)));
    let current = BlockRef { gs: first, ..old };
    let third = stamp(&host, current).unwrap();
    assert_eq!(update(&host, take_over(current, third)), Ok(()));
    // Some clients name the stamp that they were given last, of which nobody has told the NameNode.
    let next = stamp(&host, BlockRef { gs: third.next(), ..old }).unwrap();
    assert_eq!(update(&host, take_over(BlockRef { gs: third, ..old }, next)), Ok(()));
}
