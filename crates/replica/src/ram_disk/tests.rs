use super::*;

fn finalized(disk: &mut RamDisk, id: i64, bytes: u64) -> Ticket {
    let ticket = disk.open(BlockId(id), 2 * bytes);
    disk.finalized(ticket, bytes);
    ticket
}

fn save_all(disk: &mut RamDisk) {
    while let Some((ticket, _)) = disk.next_unsaved() {
        disk.saved(ticket);
    }
}

#[test]
fn bytes_are_those_of_what_is_there() {
    let mut disk = RamDisk::default();
    let [first, second] = [1, 2].map(|id| disk.open(BlockId(id), 30));
    disk.finalized(first, 20);
    assert_eq!((disk.bytes(), disk.evictable()), (50, 0));
    assert!(disk.remove(first).unwrap().is_finalized);
    assert!(!disk.remove(second).unwrap().is_finalized);
    assert_eq!((disk.bytes(), disk.remove(second)), (0, None));
}

#[test]
fn the_oldest_is_saved_first_and_what_fails_waits_behind_the_others() {
    let mut disk = RamDisk::default();
    let [a, b, c] = [1, 2, 3].map(|id| finalized(&mut disk, id, 7));
    assert_eq!(disk.next_unsaved(), Some((a, BlockId(1))));
    disk.not_saved(a);
    disk.remove(b);
    assert_eq!(disk.next_unsaved(), Some((c, BlockId(3))));
    assert_eq!(disk.next_unsaved(), Some((a, BlockId(1))));
    assert_eq!(disk.next_unsaved(), None);
    // One that is gone, or written again, is not saved.
    disk.remove(a);
    disk.not_saved(a);
    disk.reopened(c);
    disk.saved(c);
    assert_eq!((disk.next_unsaved(), disk.next_victim()), (None, None));
}

#[test]
fn only_what_is_saved_leaves_and_the_least_recently_used_first() {
    let mut disk = RamDisk::default();
    let [a, b] = [1, 2].map(|id| finalized(&mut disk, id, 7));
    assert!(disk.evictable() == 0 && disk.next_victim().is_none());
    save_all(&mut disk);
    let c = finalized(&mut disk, 3, 7);
    disk.read(a);
    disk.read(c);
    assert_eq!((disk.bytes(), disk.evictable()), (21, 14));
    assert_eq!(disk.next_victim(), Some((b, BlockId(2))));
    let left = disk.remove(b).unwrap();
    assert!(left.is_saved && !left.was_read);
    assert_eq!(disk.next_victim(), Some((a, BlockId(1))));
    assert_eq!(disk.next_victim(), None);
    disk.not_evicted(a);
    assert_eq!(disk.next_victim(), Some((a, BlockId(1))));
    assert!(disk.remove(a).unwrap().was_read);
    assert_eq!((disk.bytes(), disk.evictable()), (7, 0));
}

#[test]
fn a_copy_that_is_lost_is_made_again() {
    let mut disk = RamDisk::default();
    let ticket = finalized(&mut disk, 1, 7);
    save_all(&mut disk);
    disk.not_saved(ticket);
    assert!(disk.next_victim().is_none() && disk.evictable() == 0);
    assert_eq!(disk.next_unsaved(), Some((ticket, BlockId(1))));
    disk.saved(ticket);
    assert_eq!(disk.evictable(), 7);
    // An append makes the copy void.
    disk.reopened(ticket);
    assert_eq!(disk.evictable(), 0);
    disk.finalized(ticket, 9);
    assert_eq!((disk.bytes(), disk.next_unsaved()), (9, Some((ticket, BlockId(1)))));
}
