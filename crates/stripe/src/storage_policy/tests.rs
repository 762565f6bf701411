//! What policies say.

use super::*;

fn named(name: &str) -> StoragePolicy {
    StoragePolicy::by_name(name).unwrap()
}

#[test]
fn policies_are_found_by_number_and_name() {
    assert_eq!(StoragePolicy::by_id(StoragePolicy::UNSPECIFIED), StoragePolicy::HOT);
    assert_eq!(StoragePolicy::by_id(12).name, "ALL_SSD");
    assert_eq!(StoragePolicy::by_name("cold").map(|policy| policy.id), Some(2));
    assert_eq!(StoragePolicy::by_name("tepid"), None);
}

#[test]
fn the_last_type_is_that_of_all_further_replicas() {
    assert_eq!(named("WARM").types(3), [Disk, Archive, Archive]);
    assert_eq!(named("ONE_SSD").types(1), [Ssd]);
    assert_eq!(named("LAZY_PERSIST").types(3), [Disk, Disk, Disk]);
    assert_eq!(named("COLD").types(0), []);
}

// The cases of Hadoop's TestBlockStoragePolicy.
#[test]
fn fallbacks_take_the_place_of_what_cannot_be_had() {
    let (new, copy) = (true, false);
    for (name, present, unavailable, is_new, wanted) in [
        ("HOT", &[][..], &[][..], new, &[Disk, Disk, Disk][..]),
        ("HOT", &[Disk], &[Disk], new, &[]),
        ("HOT", &[Disk], &[Disk], copy, &[Archive, Archive]),
        ("WARM", &[], &[Archive], new, &[Disk, Disk, Disk]),
        ("WARM", &[Archive], &[Disk], copy, &[Archive, Archive]),
        ("WARM", &[Disk, Disk], &[Archive], copy, &[Disk]),
        ("WARM", &[Disk], &[Disk, Archive], new, &[]),
        ("COLD", &[], &[Archive], new, &[]),
        ("ONE_SSD", &[Disk], &[], new, &[Ssd, Disk]),
        ("ONE_SSD", &[Disk], &[Ssd], new, &[Disk, Disk]),
        ("ALL_SSD", &[Ssd], &[Ssd], new, &[Disk, Disk]),
    ] {
        let got = named(name).missing(3, present, unavailable, is_new);
        assert_eq!(got, wanted, "{name} {present:?} without {unavailable:?}");
    }
}

#[test]
fn new_blocks_that_will_be_in_a_group_have_one_replica_on_a_disk() {
    let policy = StoragePolicy::HOT_IN_MEMORY;
    let new = |present: &[StorageType], unavailable: &[StorageType]| {
        policy.missing(3, present, unavailable, true)
    };
    assert_eq!(new(&[], &[]), [RamDisk, Disk, RamDisk]);
    assert_eq!(new(&[RamDisk], &[]), [Disk, RamDisk]);
    assert_eq!(new(&[RamDisk, Disk], &[RamDisk]), [Disk]);
    assert_eq!(new(&[], &[RamDisk]), [Disk; 3]);
    assert_eq!(policy.missing(3, &[], &[], false), [Disk; 3], "no copy goes to memory");
}

#[test]
fn replicas_on_other_types_than_the_policys_are_the_surplus() {
    assert_eq!(named("HOT").excess(3, &[Disk, Archive, Disk, Disk]), [Archive]);
    assert_eq!(named("COLD").excess(3, &[Disk, Disk, Disk, Archive]), [Disk; 3]);
    assert_eq!(named("WARM").excess(3, &[Disk, Archive, Archive, Archive]), [Archive]);
    assert_eq!(named("HOT").excess(3, &[Disk; 3]), []);
}
