//! What open replicas bear while nodes leave.

use crate::data_node::Intent;
use crate::options::Options;
use crate::parts::Right;
use crate::world::World;
use cairn_namespace::BlockState;
use cairn_stripe::BlockId;

/// Lets things happen until a block is being written on two nodes.
fn until_two_write(world: &mut World<'_>) -> (BlockId, usize, usize) {
    loop {
        assert!(world.happens_meanwhile(), "nothing was written");
        for info in world.name_node.all_blocks().iter() {
            let (id, gs) = (info.block.id, info.block.gs);
            let nodes = world.nodes.iter().filter(|node| {
                node.replicas.get(&id).is_some_and(|stored| stored.replica.gs() == gs)
            });
            let nodes: Vec<usize> = nodes.map(|node| node.number).collect();
            if let (BlockState::UnderConstruction, [a, b]) = (info.block.state, &nodes[..]) {
                return (id, *a, *b);
            }
        }
    }
}

#[test]
fn an_open_replica_is_not_torn_while_the_node_of_the_other_may_be_let_go() {
    let mut right = Right;
    let options = Options { faults: 0, ..Options::default() };
    let mut world = World::new(3, options, &mut right);
    let (id, a, b) = until_two_write(&mut world);
    assert!(world.bears_all(a, [id]) && world.bears_all(b, [id]));
    world.nodes[b].intent = Intent::Leave;
    assert!(!world.bears_all(a, [id]), "the other one may be let go");
    assert!(world.bears_all(b, [id]), "and be lost, while the first one stays");
}

#[test]
fn no_node_leaves_with_the_only_open_replica_before_it_is_known_to_be_that() {
    let mut right = Right;
    let options = Options { faults: 0, ..Options::default() };
    let mut world = World::new(3, options, &mut right);
    let (id, a, b) = until_two_write(&mut world);
    assert!(world.may_leave(b));
    assert!(world.fail_for(a, &[id]));
    world.nodes[a].is_registered = false;
    assert!(!world.may_leave(b), "it would be let go");
    world.nodes[a].is_registered = true;
    assert!(world.may_leave(b), "it must stay until others have what it has");
}
