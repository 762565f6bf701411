//! Directories, names, renames, deletes, quotas.

use crate::support::{Fs, MIB, create, page, root, said};
use cairn_namespace::inode::child_key;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_times::SetTimes;
use cairn_namespace::ops::xattr::{SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::query;
use cairn_namespace::store::{StoreRead, StoreTxn, Table};
use cairn_namespace::{Outcome, Settings};
use std::ops::ControlFlow;

fn mkdir(path: &str, create_parent: bool) -> Mkdirs {
    Mkdirs { path: path.into(), mode: 0o755.into(), create_parent }
}

fn rename_to(src: &str, dst: &str, overwrite: bool) -> RenameTo {
    RenameTo { src: src.into(), dst: dst.into(), overwrite, to_trash: false }
}

#[test]
fn mkdirs_makes_parents_only_if_asked() {
    let mut fs = Fs::new();
    let error = fs.err(mkdir("/a/b/c", false));
    assert_eq!(
        said(&error),
        ("FileNotFoundException".into(), "Parent directory doesn't exist: /a/b".into())
    );
    fs.mkdirs("/a/b/c");
    assert_eq!(fs.ok(mkdir("/a/b/c", false)), Outcome::Flag(true));
    fs.write("/a/f", &[]);
    let error = fs.err(mkdir("/a/f", true));
    assert_eq!(
        said(&error),
        ("FileAlreadyExistsException".into(), "Path is not a directory: /a/f".into())
    );
    let error = fs.err(mkdir("/a/f/g", true));
    assert_eq!(
        said(&error),
        ("ParentNotDirectoryException".into(), "/a/f (is not a directory)".into())
    );
    assert_eq!(said(&fs.err(mkdir("/a/../b", true))).0, "InvalidPathException");
}

#[test]
fn listings_are_paged_in_byte_order() {
    let mut fs = Fs::new();
    for name in ["b", "a", "ä", "a.b", "Z", "a-b"] {
        fs.mkdirs(&format!("/d/{name}"));
    }
    let mut seen = Vec::new();
    let mut after = Vec::new();
    loop {
        let page = page(&fs.store, "/d", &after, 2);
        assert!(page.entries.len() <= 2);
        seen.extend(page.entries.iter().map(|entry| entry.inode.name.clone()));
        assert_eq!(page.remaining, 6 - seen.len() as u64);
        if page.remaining == 0 {
            break;
        }
        after = seen.last().unwrap().clone().into_bytes();
    }
    assert_eq!(seen, ["Z", "a", "a-b", "a.b", "b", "ä"]);
    fs.write("/f", &[5]);
    let file = query::get_listing(&fs.store, &root(), "/f", b"", 2).unwrap().unwrap();
    assert_eq!((file.entries.len(), file.entries[0].inode.name.as_str()), (1, ""));
    assert_eq!(query::get_listing(&fs.store, &root(), "/none", b"", 2).unwrap(), None);
}

#[test]
fn names_and_directories_have_limits() {
    let settings = Settings { component_len_max: 4, directory_items_max: 2, ..Settings::default() };
    let mut fs = Fs::with(settings);
    assert_eq!(
        said(&fs.err(mkdir("/abcde", true))).0,
        "FSLimitException$PathComponentTooLongException"
    );
    fs.mkdirs("/a");
    fs.mkdirs("/b");
    assert_eq!(
        said(&fs.err(mkdir("/c", true))),
        (
            "FSLimitException$MaxDirectoryItemsExceededException".into(),
            "The directory item limit of / is exceeded: limit=2 items=2".into()
        )
    );
    // A name that only changes takes no more room.
    fs.ok(rename_to("/b", "/cc", false));
    assert_eq!(fs.names("/"), ["a", "cc"]);
    let deep = "/x".repeat(1001);
    assert!(said(&fs.err(mkdir(&deep, true))).1.starts_with("Pathname too long."));
}

#[test]
fn a_time_to_come_stays_when_children_come_and_go() {
    let mut fs = Fs::new();
    fs.mkdirs("/d/a");
    let late = u64::MAX >> 1;
    fs.ok(SetTimes { path: "/d".into(), mtime: Some(late), atime: None });
    fs.mkdirs("/d/b");
    fs.delete("/d/a");
    fs.ok(rename_to("/d/b", "/c", false));
    assert_eq!(fs.status("/d").unwrap().inode.mtime, late);
    // It comes with who has it to a new parent, but not back to the old one.
    fs.ok(rename_to("/d", "/e", false));
    assert_eq!(fs.status("/").unwrap().inode.mtime, late);
    fs.mkdirs("/f/g");
    fs.ok(SetTimes { path: "/f/g".into(), mtime: Some(late), atime: None });
    fs.ok(rename_to("/f/g", "/e/g", false));
    assert_eq!(fs.status("/f").unwrap().inode.mtime, fs.now_ms);
}

#[test]
fn a_rename_is_refused_for_room_before_its_name() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.mkdirs("/e");
    fs.ok(SetQuota {
        path: "/d".into(),
        names_max: QuotaChange::Set { max: 1 },
        space_max: QuotaChange::Keep,
    });
    assert_eq!(said(&fs.err(rename_to("/e", "/d/.snapshot", false))).0, "NSQuotaExceededException");
    assert_eq!(said(&fs.err(mkdir("/d/.snapshot", false))).0, "HadoopIllegalArgumentException");
}

#[test]
fn the_old_rename_moves_into_directories_and_never_overwrites() {
    let mut fs = Fs::new();
    fs.mkdirs("/d/sub");
    fs.write("/f", &[7]);
    let rename = |src: &str, dst: &str| Rename { src: src.into(), dst: dst.into() };
    assert_eq!(fs.ok(rename("/f", "/d")), Outcome::Flag(true));
    assert_eq!(fs.status("/d/f").unwrap().len(), 7);
    fs.write("/f", &[]);
    assert_eq!(fs.ok(rename("/f", "/d/f")), Outcome::Flag(false));
    assert_eq!(fs.ok(rename("/f", "/d")), Outcome::Flag(false));
    assert_eq!(fs.ok(rename("/none", "/x")), Outcome::Flag(false));
    assert_eq!(fs.ok(rename("/d", "/d/sub/x")), Outcome::Flag(false));
    assert_eq!(fs.ok(rename("/d/f", "/none/f")), Outcome::Flag(false));
    assert_eq!(fs.ok(rename("/d/f", "/d/f")), Outcome::Flag(true));
    assert_eq!(fs.names("/d"), ["f", "sub"]);
}

#[test]
fn the_new_rename_says_why_not() {
    let mut fs = Fs::new();
    fs.mkdirs("/d/sub");
    fs.write("/f", &[7]);
    fs.write("/g", &[8]);
    let cases = [
        ("/f", "/f", "FileAlreadyExistsException", "The source /f and destination /f are the same"),
        ("/none", "/x", "FileNotFoundException", "rename source /none is not found."),
        ("/", "/x", "IOException", "rename source cannot be the root"),
        ("/f", "/g", "FileAlreadyExistsException", "rename destination /g already exists"),
        ("/f", "/d", "IOException", "Source /f and destination /d must both be directories"),
        ("/f", "/no/f", "FileNotFoundException", "rename destination parent /no/f not found."),
        (
            "/d",
            "/d/sub/x",
            "IOException",
            "Rename destination /d/sub/x is a directory or file under source /d",
        ),
    ];
    for (src, dst, class, text) in cases {
        assert_eq!(said(&fs.err(rename_to(src, dst, false))), (class.into(), text.into()));
    }
    fs.mkdirs("/e");
    assert_eq!(
        said(&fs.err(rename_to("/e", "/d", true))).1,
        "rename destination directory is not empty: /d"
    );
    let moved = fs.ok(rename_to("/f", "/g", true));
    assert!(matches!(moved, Outcome::Removed { .. }), "{moved:?}");
    assert_eq!(fs.removed.iter().map(|block| block.len).collect::<Vec<_>>(), [8]);
    assert_eq!(fs.status("/g").unwrap().len(), 7);
    assert_eq!(fs.status("/f"), None);
    fs.ok(rename_to("/d", "/e", true));
    assert_eq!(fs.names("/e"), ["sub"]);
    assert_eq!(query::totals(&fs.store).unwrap().inodes, 4);
}

#[test]
fn delete_gives_back_every_block() {
    let mut fs = Fs::new();
    fs.write("/d/a/f", &[128 * MIB, 3]);
    fs.write("/d/g", &[4]);
    assert_eq!(
        said(&fs.err(Delete { path: "/d".into(), recursive: false })),
        (
            "PathIsNotEmptyDirectoryException".into(),
            "`/d is non empty': Directory is not empty".into()
        )
    );
    assert_eq!(fs.delete("/d"), Outcome::Removed { done: true, more: false });
    assert_eq!(fs.removed.len(), 3);
    assert_eq!(fs.status("/d"), None);
    let totals = query::totals(&fs.store).unwrap();
    assert_eq!((totals.inodes, totals.blocks), (1, 0));
    for path in ["/d", "/"] {
        let outcome = fs.delete(path);
        assert!(matches!(outcome, Outcome::Removed { done: false, .. }), "{path}");
    }
}

#[test]
fn a_large_tree_goes_at_once_and_its_inodes_by_and_by() {
    let mut fs = Fs::new();
    for directory in 0..30 {
        for file in 0..40 {
            fs.write(&format!("/d/{directory}/{file}"), &[1]);
        }
    }
    fs.create("/d/open");
    let Outcome::Removed { mut more, .. } = fs.delete("/d") else { panic!() };
    let mut blocks = fs.removed_ids();
    assert!(more, "1231 inodes and 1200 blocks are more than a delete removes itself");
    assert_eq!(fs.names("/"), Vec::<String>::new());
    while more {
        let before = blocks.len();
        let Outcome::Removed { more: rest, .. } = fs.ok(Purge { limit: 100 }) else { panic!() };
        assert!(fs.removed.len() <= 100);
        blocks.extend(fs.removed_ids());
        more = rest;
        assert!(blocks.len() > before || !more || blocks.len() == 1200);
    }
    assert_eq!(blocks.len(), 1200);
    let totals = query::totals(&fs.store).unwrap();
    assert_eq!((totals.inodes, totals.blocks), (1, 0));
    assert!(query::expired_leases(&fs.store, u64::MAX, None, 10).unwrap().is_empty());
}

/// Files that lie among others, and such as are not removed together with their neighbours.
#[test]
fn what_goes_by_and_by_takes_nothing_else_along() {
    for limit in [1, 2, 7, 50, 1000] {
        let mut fs = Fs::new();
        let mut kept = Vec::new();
        for number in 0..800_u64 {
            let (doomed, other) = (format!("/d/{}/{number}", number % 3), format!("/e/{number}"));
            match number % 40 {
                1 => fs.write(&doomed, &[1; 20]),
                2 => fs.create(&doomed),
                3 => fs.write(&doomed, &[]),
                4 => fs.write(&doomed, &[1, 2]),
                _ => fs.write(&doomed, &[1]),
            };
            if number % 40 == 5 {
                // As older builds wrote entries.
                let id = fs.status(&doomed).unwrap().inode.id;
                let key = child_key(
                    fs.status(&format!("/d/{}", number % 3)).unwrap().inode.id,
                    &number.to_string(),
                );
                fs.store.put(Table::Child, &key, &id.key()).unwrap();
            }
            for path in [Some(&doomed), (number % 5 == 0).then_some(&other)].into_iter().flatten() {
                if *path == other {
                    kept.push(fs.write(&other, &[3]));
                }
                if number % 10 == 0 {
                    let name = XAttrName { space: XAttrSpace::User, name: "a".into() };
                    let (path, value) = (path.clone(), vec![1]);
                    fs.ok(SetXAttr { path, name, value, create: true, replace: true });
                }
            }
        }
        let before = query::totals(&fs.store).unwrap().blocks;
        let Outcome::Removed { mut more, .. } = fs.delete("/d") else { panic!() };
        let mut blocks = fs.removed_ids();
        assert!(more);
        while more {
            let Outcome::Removed { more: rest, .. } = fs.ok(Purge { limit }) else { panic!() };
            let next = fs.removed_ids();
            assert!(next.len() as u64 <= limit + 16, "{} of {limit}", next.len());
            blocks.extend(next);
            more = rest;
        }
        assert_eq!(blocks.len() as u64, before - kept.len() as u64);
        blocks.sort_by_key(|id| id.0);
        blocks.dedup();
        assert_eq!(blocks.len() as u64, before - kept.len() as u64);
        let totals = query::totals(&fs.store).unwrap();
        assert_eq!((totals.inodes, totals.blocks), (kept.len() as u64 + 2, kept.len() as u64));
        let count = |table| {
            let mut count = 0;
            let visit = &mut |_: &[u8], _: &[u8]| {
                count += 1;
                ControlFlow::Continue(())
            };
            fs.store.scan(table, &[], &[], visit).unwrap();
            count
        };
        let tables = [Table::Inode, Table::Child, Table::FileBlock, Table::Block, Table::XAttr];
        assert_eq!(tables.map(count), [162, 161, 160, 160, 80], "{limit}");
        assert_eq!([Table::LeaseFile, Table::Garbage].map(count), [0, 0]);
        for number in (0..800).step_by(5) {
            let path = format!("/e/{number}");
            assert_eq!(
                query::get_blocks(&fs.store, &root(), &path, 0, 9, 9).unwrap().blocks.len(),
                1
            );
        }
    }
}

#[test]
fn quotas_bind_and_follow_moves() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    let quota = |names, space| SetQuota {
        path: "/q".into(),
        names_max: QuotaChange::Set { max: names },
        space_max: QuotaChange::Set { max: space },
    };
    fs.ok(quota(3, 1000 * MIB));
    fs.write("/q/a", &[100 * MIB]);
    fs.mkdirs("/q/b");
    assert_eq!(
        said(&fs.err(mkdir("/q/c", true))),
        (
            "NSQuotaExceededException".into(),
            "The NameSpace quota (directories and files) of directory /q is exceeded: quota=3 file \
             count=4"
                .into()
        )
    );
    assert_eq!(said(&fs.err(rename_to("/q/a", "/q/b/c/d", false))).0, "FileNotFoundException");
    fs.ok(rename_to("/q/a", "/a", false));
    fs.write("/q/n", &[]);
    assert_eq!(said(&fs.err(rename_to("/a", "/q/a", false))).0, "NSQuotaExceededException");
    fs.delete("/q/n");
    fs.ok(rename_to("/a", "/q/a", false));
    let more = SetReplication { path: "/q/a".into(), replication: 11 };
    assert_eq!(said(&fs.err(more)).0, "DSQuotaExceededException");
    fs.ok(quota(10, 300 * MIB));
    fs.ok(create("/q/f"));
    assert_eq!(
        said(&fs.err(crate::support::add_block("/q/f", None))).0,
        "DSQuotaExceededException"
    );
    let sum = query::content_summary(&fs.store, &root(), "/q").unwrap();
    assert_eq!((sum.files, sum.directories, sum.len, sum.space), (2, 2, 100 * MIB, 300 * MIB));
    assert_eq!((sum.names_max, sum.space_max), (Some(10), Some(300 * MIB)));
}
