//! The index of a unit is never lost on the way: in reports of bad ones, in deletions, in orders.

use super::*;

/// FIELD-NOTES row 5: what is deleted after a bad unit was reported is that unit, by its own index, there and
/// nowhere else; also on a node that has two units of the group.
#[test]
fn row_05_the_unit_that_was_reported_to_be_bad_is_the_one_that_is_deleted() {
    for bad in 0..9_u8 {
        let mut world = World::new(13, 4);
        let id = group(1);
        world.store(id, rs(6, 3, 6 * 4096, LIVE), &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        // The node has the next unit as well, as a second good copy.
        let neighbour = world.good(id, (bad + 1) % 9);
        world.received(usize::from(bad), neighbour);
        let handle = world.handle(usize::from(bad));
        let block = world.good(id, bad);
        let uuid = storage_uuid(usize::from(bad));
        world.cluster.report_bad(&world.blocks, handle, &uuid, block).unwrap();
        let commands = world.run(6000, &[]);
        let works = decodes(&commands);
        let [(_, work)] = &works[..] else { panic!("{works:?}") };
        let targets: Vec<UnitIndex> = work.targets.iter().map(|(_, unit)| *unit).collect();
        assert_eq!(targets, [UnitIndex(bad)]);
        assert!(work.sources.iter().all(|(_, unit)| unit.0 != bad));
        let target = world.number(work.targets[0].0);
        world.received(target, block);
        let mut deleted = deletions(&commands);
        deleted.extend(deletions(&world.run(6000, &[])));
        for (node, deleted) in &deleted {
            let is_bad = (*node, *deleted) == (usize::from(bad), block);
            assert!(
                is_bad || deleted.id == neighbour.id,
                "node {node} was told to delete {deleted:?}"
            );
        }
        assert!(deleted.contains(&(usize::from(bad), block)));
        for (node, block) in deleted {
            world.deleted(node, block);
        }
        let units: Vec<u8> = {
            let mut units: Vec<u8> = world.places(id).iter().map(|(_, unit)| *unit).collect();
            units.sort_unstable();
            units
        };
        assert_eq!(units, (0..9).collect::<Vec<_>>(), "each unit once");
    }
}

/// FIELD-NOTES rows 2 and 22: an order names exactly the missing units, each once, a target for each, and
/// every unit that is neither read nor rebuilt; so no DataNode has to guess, whatever else is going on.
#[test]
fn row_02_row_22_orders_name_exactly_the_missing_units() {
    for seed in 0..200 {
        let mut dice = dice(seed);
        let mut world = World::new(14, 5);
        let id = group(1);
        let facts = rs(6, 3, 6 * 4096, LIVE);
        world.store(id, facts, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let leaving = (dice() % 9) as usize;
        let handle = world.handle(leaving);
        world.cluster.set_admin_state(&world.blocks, handle, AdminState::DecommissionInProgress);
        let mut dead: Vec<usize> = (0..1 + dice() % 3).map(|_| (dice() % 9) as usize).collect();
        dead.sort_unstable();
        dead.dedup();
        for node in &dead {
            die(&mut world, *node);
        }
        let works = decodes(&world.run(9000, &dead));
        let mut rebuilt = Vec::new();
        for (_, work) in &works {
            let sources: Vec<u8> = work.sources.iter().map(|(_, unit)| unit.0).collect();
            let targets: Vec<u8> = work.targets.iter().map(|(_, unit)| unit.0).collect();
            let left_alone: Vec<u8> = work.excluded_units.iter().map(|unit| unit.0).collect();
            let mut named = [&sources[..], &targets, &left_alone].concat();
            named.sort_unstable();
            assert_eq!(named, (0..9).collect::<Vec<_>>(), "seed {seed}: each unit once");
            assert!(sources.len() >= 6 && targets.len() <= 3, "seed {seed}");
            for (storage, unit) in &work.sources {
                assert_eq!(world.number(*storage), usize::from(unit.0), "seed {seed}");
            }
            rebuilt.extend(targets);
        }
        rebuilt.sort_unstable();
        let needed = |unit: &u8| dead.contains(&usize::from(*unit));
        assert!(dead.iter().all(|node| rebuilt.contains(&(*node as u8))), "seed {seed}");
        let extra: Vec<&u8> = rebuilt.iter().filter(|unit| !needed(unit)).collect();
        assert!(extra.iter().all(|unit| usize::from(**unit) == leaving), "seed {seed}: {extra:?}");
    }
}
