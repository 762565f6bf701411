//! The layout against a plain map: places in order, flags, and what each storage holds.

use super::*;
use std::collections::BTreeSet;

/// What a plain map says.
type Model = BTreeMap<BlockId, Vec<Place>>;

fn seeded(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    }
}

fn internal(id: BlockId, unit: UnitIndex) -> BlockId {
    if id.has_units() { id.internal(unit) } else { id }
}

/// A block or group among some hundred that are near each other, and a few at the ends of all ids.
fn some_id(dice: &mut impl FnMut(u64) -> u64) -> BlockId {
    let number = dice(300) as i64;
    match dice(11) {
        0 => BlockId(number % 3),
        1 => BlockId(i64::MAX - number % 3),
        2 => BlockId(-16 * (1 + number % 3)),
        3..=5 => BlockId(i64::MIN + 16 * number),
        6 => BlockId((1 << 61) + 16 * number),
        7 => BlockId((1 << 62) - 16 * (1 + number % 3)),
        _ => BlockId((1 << 30) + number * 7),
    }
}

fn assert_holds(map: &BlockMap, model: &Model, storages: &[u32]) {
    for (id, places) in model {
        assert_eq!(&map.places(*id).collect::<Vec<_>>(), places);
    }
    for storage in storages.iter().copied().map(StorageHandle) {
        let mut held: BTreeSet<BlockId> = BTreeSet::new();
        for (id, places) in model {
            let here = places.iter().filter(|place| place.storage == storage);
            held.extend(here.map(|place| internal(*id, place.unit)));
        }
        assert!(map.iter_on(storage, None).eq(held.iter().copied()), "{storage:?}");
        assert_eq!(map.count_on(storage), held.len());
        let chunk_of = |own_id: &BlockId| split(*own_id).0;
        let chunks: BTreeSet<i64> = held.iter().map(chunk_of).collect();
        assert_eq!(map.chunks_on(storage), chunks.len());
        for (count, chunk) in chunks.iter().enumerate() {
            let first = held.iter().find(|own_id| chunk_of(own_id) == *chunk);
            assert_eq!(map.first_in_chunk(storage, count), first.copied());
        }
        assert_eq!(map.first_in_chunk(storage, chunks.len()), None);
    }
}

#[test]
fn holds_what_a_plain_map_holds() {
    let mut dice = seeded(11);
    // Storages with few and with many bits, up to the last that there can be.
    let last = STORAGES_MAX as u32 - 1;
    let storages: Vec<u32> = (0..14).chain([1000, 70_000, last - 1, last]).collect();
    let (mut map, mut model) = (BlockMap::default(), Model::new());
    for round in 0..30_000 {
        let id = some_id(&mut dice);
        let storage = StorageHandle(storages[dice(storages.len() as u64) as usize]);
        let unit = UnitIndex(if id.has_units() { dice(16) as u8 } else { 0 });
        let known = model.entry(id).or_default();
        let position = known.iter().position(|p| p.storage == storage && p.unit == unit);
        assert_eq!(map.is_on(storage, internal(id, unit)), position.is_some());
        match dice(if round < 15_000 { 60 } else { 12 }) {
            0 => assert_eq!(map.remove_block(id), std::mem::take(known)),
            1..=6 => {
                let removed = position.map(|position| known.remove(position));
                assert_eq!(map.remove(id, storage, unit), removed);
            }
            7..=9 => {
                let flags = [(); 3].map(|()| dice(2) == 0);
                let set = |place: &mut Place| {
                    [place.corrupt, place.excess, place.told] = flags;
                    *place
                };
                let changed = position.map(|position| set(&mut known[position]));
                assert_eq!(map.change(id, storage, unit, set), changed);
            }
            _ => {
                let place = Place { storage, unit, corrupt: false, excess: false, told: false };
                if position.is_none() {
                    known.push(place);
                }
                assert_eq!(map.add(id, storage, unit), position.is_none());
            }
        }
        assert_eq!(&map.places(id).collect::<Vec<_>>(), &model[&id]);
        if round % 1000 == 0 {
            assert_holds(&map, &model, &storages);
        }
    }
    assert_holds(&map, &model, &storages);
    for id in model.into_keys() {
        map.remove_block(id);
    }
    assert!(map.chunks.is_empty());
    assert!(map.held.iter().all(|held| held.count == 0 && held.chunks.len() == 0));
}

/// As when most files of a time are deleted: what is left must not hold on to the room of all.
#[test]
fn a_chunk_gives_back_the_room_of_what_is_gone() {
    let mut map = BlockMap::default();
    let id = |number: i64| BlockId(i64::MIN + 16 * number);
    for number in 0..64 {
        for unit in 0..9 {
            map.add(id(number), StorageHandle(u32::from(unit)), UnitIndex(unit));
        }
    }
    let room = |map: &BlockMap| map.chunks.values().map(Chunk::room).sum::<usize>();
    let full = room(&map);
    assert!((640..=690).contains(&full), "{full} words for 576 places of 64 groups");
    for number in 1..64 {
        map.remove_block(id(number));
    }
    assert!(room(&map) <= 24, "{} words for one group", room(&map));
    assert_eq!(map.places(id(0)).count(), 9);
}
