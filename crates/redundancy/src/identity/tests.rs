//! Two DataNodes of one UUID, as a cloned machine makes them.

use crate::fixture::*;
use crate::*;

const UUID: &str = "uuid-0";

/// A process of DataNode 0 at an address of its own.
fn process(at: usize, number: Option<u64>) -> Registration {
    let mut process = Registration { process: number, ..registration(0, 0) };
    process.address.ip = format!("10.0.9.{at}");
    process
}

/// What one of them sends, told from the other's by a figure.
fn beat(
    world: &mut World,
    from: &Registration,
    xceivers: u32,
) -> Result<HeartbeatAnswer, RedundancyError> {
    let heartbeat = Heartbeat { xceivers, ..heartbeat_of(0, GIB) };
    world.cluster.heartbeat(&world.blocks, &from.claim(), heartbeat, world.now)
}

fn register(world: &mut World, process: &Registration) -> Result<NodeHandle, RedundancyError> {
    let process = Registration { asked: world.now, ..process.clone() };
    world.cluster.register(&world.blocks, process, world.now)
}

fn xceivers(world: &World) -> u32 {
    world.cluster.node_by_uuid(UUID).unwrap().xceivers
}

fn twin(world: &World) -> Option<String> {
    let node = world.cluster.node_by_uuid(UUID).unwrap();
    node.twin(world.now).map(|address| address.to_string())
}

fn pass(world: &mut World, ms: u64) {
    world.now = at(world.now.mono_ms + ms);
}

#[test]
fn the_one_at_another_address_is_told_to_register_and_counts_for_nothing() {
    let mut world = World::new(2, 2);
    let [first, copy] = [1, 2].map(|at| process(at, None));
    register(&mut world, &first).unwrap();
    register(&mut world, &copy).unwrap();
    assert_eq!(beat(&mut world, &copy, 2).unwrap().commands, []);
    assert_eq!(beat(&mut world, &first, 1).unwrap().commands, [Command::Register]);
    let refused = world.cluster.registered(&first.claim()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Data node 10.0.9.1:9866 is attempting to report storage ID uuid-0. Node 10.0.9.2:9866 is \
         expected to serve this storage."
    );
    let heartbeat = Heartbeat { xceivers: 1, ..heartbeat_of(0, GIB) };
    let lifeline = world.cluster.lifeline(&world.blocks, &first.claim(), heartbeat, world.now);
    assert!(matches!(lifeline, Err(RedundancyError::OtherNode { is_replaced: false, .. })));
    assert_eq!(xceivers(&world), 2);
    assert_eq!(world.cluster.registered(&copy.claim()), Ok(world.handle(0)));
}

#[test]
fn silence_of_the_registered_one_is_not_broken_by_the_other() {
    let mut world = World::new(2, 2);
    let [first, copy] = [1, 2].map(|at| process(at, None));
    register(&mut world, &first).unwrap();
    register(&mut world, &copy).unwrap();
    // The copy is stopped, and the first one does not heed what it is told.
    for _ in 0..300 {
        world.run(3000, &[0]);
        beat(&mut world, &first, 1).unwrap();
    }
    assert_eq!(world.cluster.stats(world.now).dead_nodes, 1);
    register(&mut world, &first).unwrap();
    assert_eq!(beat(&mut world, &first, 1).unwrap().commands, []);
}

#[test]
fn a_process_whose_place_another_has_taken_is_refused_whatever_it_asks() {
    let mut world = World::new(2, 2);
    // At one address as well, as two machines behind one router may be.
    for copy_at in [1, 2] {
        let (first, copy) = (process(1, Some(1)), process(copy_at, Some(2)));
        let mut world = World::new(2, 2);
        register(&mut world, &first).unwrap();
        register(&mut world, &copy).unwrap();
        let is_refused =
            |answer| matches!(answer, Err(RedundancyError::OtherNode { is_replaced: true, .. }));
        assert!(is_refused(beat(&mut world, &first, 1).map(|_| ())));
        assert!(is_refused(register(&mut world, &first).map(|_| ())));
        assert!(is_refused(world.cluster.registered(&first.claim()).map(|_| ())));
        assert_eq!(beat(&mut world, &copy, 2).unwrap().commands, []);
        assert_eq!(xceivers(&world), 2);
    }
    // One that was never heard of may be the younger one.
    register(&mut world, &process(1, Some(1))).unwrap();
    assert_eq!(beat(&mut world, &process(2, Some(2)), 2).unwrap().commands, [Command::Register]);
}

#[test]
fn one_process_may_have_several_addresses() {
    let mut world = World::new(2, 2);
    let [first, second] = [1, 2].map(|at| process(at, Some(1)));
    register(&mut world, &first).unwrap();
    register(&mut world, &second).unwrap();
    // A call that was under way claims the address of before.
    assert_eq!(beat(&mut world, &first, 1).unwrap().commands, []);
    assert_eq!(beat(&mut world, &second, 1).unwrap().commands, []);
    assert_eq!(twin(&world), None);
}

#[test]
fn one_whose_place_a_dead_one_had_taken_gets_it_back() {
    let mut world = World::new(2, 2);
    let (first, copy) = (process(1, Some(1)), process(2, Some(2)));
    register(&mut world, &first).unwrap();
    register(&mut world, &copy).unwrap();
    world.run(700_000, &[0]);
    assert_eq!(beat(&mut world, &first, 1).unwrap().commands, [Command::Register]);
    register(&mut world, &first).unwrap();
    assert_eq!(beat(&mut world, &first, 1).unwrap().commands, []);
    assert!(beat(&mut world, &copy, 2).is_err());
}

#[test]
fn what_a_predecessor_asked_does_not_take_the_place_of_its_successor() {
    let mut world = World::new(2, 2);
    // Its rack was looked for until after its end, and after the next process had registered.
    let late = Registration { asked: world.now, ..process(1, Some(1)) };
    pass(&mut world, 1000);
    let next = process(1, Some(2));
    register(&mut world, &next).unwrap();
    let late = world.cluster.register(&world.blocks, late, world.now);
    assert!(matches!(late, Err(RedundancyError::OtherNode { is_replaced: false, .. })));
    assert_eq!(beat(&mut world, &next, 2).unwrap().commands, []);
}

#[test]
fn both_are_named_while_both_live() {
    // Of Cairn's DataNodes the older one is heard of once more, and stops.
    let mut world = World::new(2, 2);
    let (first, copy) = (process(1, Some(1)), process(2, Some(2)));
    register(&mut world, &first).unwrap();
    register(&mut world, &copy).unwrap();
    assert_eq!(twin(&world), None, "a machine that was moved looks like this");
    assert!(beat(&mut world, &first, 1).unwrap_err().shows_twin());
    assert_eq!(twin(&world).as_deref(), Some("10.0.9.1:9866"));
    pass(&mut world, 600_000);
    assert_eq!(twin(&world), None, "it has not been heard of since");
    // Somebody starts it again.
    let (first, copy) = (process(1, Some(3)), process(2, Some(4)));
    register(&mut world, &first).unwrap();
    assert_eq!(twin(&world), None);
    register(&mut world, &copy).unwrap();
    assert_eq!(twin(&world).as_deref(), Some("10.0.9.1:9866"));
    // Those of Hadoop have it in turn.
    let mut world = World::new(2, 2);
    let [first, copy] = [1, 2].map(|at| process(at, None));
    register(&mut world, &first).unwrap();
    register(&mut world, &copy).unwrap();
    assert_eq!(twin(&world), None);
    register(&mut world, &first).unwrap();
    assert_eq!(twin(&world).as_deref(), Some("10.0.9.2:9866"));
    register(&mut world, &copy).unwrap();
    assert_eq!(twin(&world).as_deref(), Some("10.0.9.1:9866"));
}

#[test]
fn a_restart_makes_no_twin() {
    let mut world = World::new(2, 2);
    for number in 1..20 {
        register(&mut world, &process(1, Some(number))).unwrap();
        assert!(beat(&mut world, &process(1, Some(number)), 1).unwrap().commands.is_empty());
        if number > 1 {
            // A call of the last one was under way.
            let refused = beat(&mut world, &process(1, Some(number - 1)), 2).unwrap_err();
            assert!(!refused.shows_twin(), "nobody is to be told of two");
        }
        assert_eq!(twin(&world), None);
        pass(&mut world, 1000);
    }
}

#[test]
fn what_is_said_of_a_node_is_said_of_the_one_at_that_address() {
    let mut world = World::new(2, 2);
    let copy = process(2, Some(2));
    let before = registration(0, 0);
    let storage = storage_uuid(0);
    let named = |world: &World, of: &Registration| {
        // Who tells of others knows no number of their process.
        let claim = NodeClaim { process: None, ..of.claim() };
        world.cluster.storages_named([(claim, storage.as_str())])
    };
    let known = Some(world.storage(0));
    assert_eq!(named(&world, &before), [known]);
    register(&mut world, &copy).unwrap();
    assert_eq!(named(&world, &before), [None]);
    assert_eq!(named(&world, &copy), [known]);
}
