//! Cutting files off inside a block, and joining them.

use crate::support::{Fs, MIB, Ordered, create, said};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::lease::{LastBlocks, RecoverLease};
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{BlockRef, Command, Outcome, query};

pub fn cut(path: &str, new_len: u64) -> Truncate {
    Truncate { path: path.into(), new_len, holder: "client".into(), client_machine: "host".into() }
}

/// The recovery that a command orders, and how many blocks it removes.
pub fn work(fs: &mut Fs, command: impl Into<Command>) -> (Ordered, usize) {
    assert_eq!(fs.ok(command), Outcome::Recovery { closed: false });
    (fs.ordered().unwrap(), fs.removed.len())
}

pub fn done(work: &Ordered, new_len: u64) -> CommitBlockSynchronization {
    CommitBlockSynchronization {
        block: work.block.reference(),
        new_gs: work.recovery_gs,
        new_len,
        close_file: true,
        delete_block: DropBlock::No,
    }
}

fn space_quota(fs: &mut Fs, max: u64) {
    fs.ok(SetQuota {
        path: "/d".into(),
        names_max: QuotaChange::Keep,
        space_max: QuotaChange::Set { max },
    });
}

fn space(fs: &Fs) -> u64 {
    let inode = fs.status("/d").unwrap().inode;
    inode.directory().unwrap().quota.as_ref().unwrap().space
}

#[test]
fn a_block_is_cut_off_by_a_recovery() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    space_quota(&mut fs, 1 << 40);
    fs.write("/d/f", &[4 * MIB, 4 * MIB, 4 * MIB]);
    assert_eq!(space(&fs), 36 * MIB);
    let (first, removed) = work(&mut fs, cut("/d/f", 5 * MIB));
    assert_eq!((first.block.truncated_len(), removed), (Some(MIB), 1));
    let status = fs.status("/d/f").unwrap();
    assert!(status.is_under_construction());
    assert_eq!(status.len(), 8 * MIB);
    // The same again is on its way; another length has to wait, and so have writers.
    let again = Outcome::Removed { done: false, more: false };
    assert_eq!(fs.ok(cut("/d/f", 5 * MIB)), again);
    assert_eq!(fs.effects, []);
    let (class, text) = said(&fs.err(cut("/d/f", 6 * MIB)));
    assert_eq!(class, "AlreadyBeingCreatedException");
    assert_eq!(
        text,
        "Failed to TRUNCATE_FILE /d/f for client on host because /d/f is being truncated."
    );
    let replicas = LastBlocks {
        penultimate_min_replicated: true,
        last_min_replicated: true,
        last_has_locations: true,
        seen: None,
    };
    let append = Append {
        path: "/d/f".into(),
        holder: "other".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas,
    };
    assert_eq!(said(&fs.err(append.clone())).0, "RecoveryInProgressException");
    // Another attempt keeps the length.
    fs.now_ms += 100_000;
    let recover = RecoverLease { path: "/d/f".into(), holder: "other".into(), replicas };
    let (second, _) = work(&mut fs, recover);
    assert_eq!(second.block.truncated_len(), Some(MIB));
    assert_ne!(second.recovery_gs, first.recovery_gs);
    let (_, text) = said(&fs.err(done(&first, MIB)));
    assert!(text.contains("does not match current recovery id"), "{text}");
    fs.ok(done(&second, MIB));
    let status = fs.status("/d/f").unwrap();
    assert_eq!((status.len(), status.is_under_construction()), (5 * MIB, false));
    assert_eq!(space(&fs), 15 * MIB);
    // Writing goes on in the block that was cut.
    match fs.ok(append) {
        Outcome::Appended { last: Some((offset, block)), .. } => {
            assert_eq!((offset, block.len), (4 * MIB, MIB));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lengths_at_boundaries_are_done_at_once() {
    let mut fs = Fs::new();
    fs.write("/f", &[4 * MIB, 4 * MIB]);
    let nothing = Outcome::Removed { done: true, more: false };
    let mtime = fs.status("/f").unwrap().inode.mtime;
    assert_eq!(fs.ok(cut("/f", 8 * MIB)), nothing);
    assert_eq!(fs.effects, []);
    assert_eq!(fs.status("/f").unwrap().inode.mtime, mtime);
    for len in [4 * MIB, 0] {
        assert_eq!(fs.ok(cut("/f", len)), nothing);
        assert_eq!(fs.removed.len(), 1);
    }
    assert_eq!(fs.status("/f").unwrap().inode.file().unwrap().block_count, 0);
}

#[test]
fn striped_files_are_not_cut_off() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.set_policy("/d", "RS-3-2-1024k");
    fs.write("/d/f", &[4 * MIB]);
    let want = (
        "UnsupportedOperationException".to_string(),
        "Cannot truncate file with striped block /d/f".to_string(),
    );
    assert_eq!(said(&fs.err(cut("/d/f", 0))), want);
}

fn concat(sources: &[&str]) -> Concat {
    Concat {
        target: "/d/a".into(),
        sources: sources.iter().map(|source| format!("/d/{source}")).collect(),
    }
}

#[test]
fn joined_files_are_kept_as_the_first() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    space_quota(&mut fs, 1 << 40);
    let one_copy = |fs: &mut Fs, path: &str| {
        fs.ok(Create { replication: 1, ..create(path) });
        let block = fs.add_block(path, None);
        fs.complete(path, Some(BlockRef { len: 6 * MIB, ..block.reference() }));
    };
    fs.write("/d/a", &[MIB, 2 * MIB]);
    one_copy(&mut fs, "/d/b");
    one_copy(&mut fs, "/d/c");
    assert_eq!(space(&fs), 9 * MIB + 12 * MIB);
    space_quota(&mut fs, 40 * MIB);
    let (class, text) = said(&fs.err(concat(&["b", "c"])));
    assert_eq!(class, "DSQuotaExceededException", "{text}");
    space_quota(&mut fs, 100 * MIB);
    fs.ok(concat(&["c", "b"]));
    assert_eq!(space(&fs), 45 * MIB);
    assert_eq!(fs.names("/d"), ["a"]);
    let status = fs.status("/d/a").unwrap();
    assert_eq!((status.len(), status.replication()), (15 * MIB, 3));
    let root = crate::support::root();
    let blocks = query::get_blocks(&fs.store, &root, "/d/a", 0, 1 << 40, 0).unwrap();
    let offsets: Vec<_> = blocks.blocks.iter().map(|(offset, _)| offset / MIB).collect();
    assert_eq!(offsets, [0, 1, 3, 9]);
}

#[test]
fn files_that_cannot_be_joined() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.mkdirs("/d/s");
    fs.write("/d/a", &[MIB]);
    fs.write("/d/b", &[MIB]);
    fs.write("/d/empty", &[]);
    fs.write("/d/s/far", &[MIB]);
    fs.create("/d/open");
    fs.mkdirs("/d/x");
    fs.set_policy("/d/x", "RS-3-2-1024k");
    fs.write("/d/x/e", &[MIB]);
    let rename = |src: &str, dst: &str| cairn_namespace::ops::rename::RenameTo {
        src: src.into(),
        dst: dst.into(),
        overwrite: false,
        to_trash: false,
    };
    fs.ok(rename("/d/x/e", "/d/e"));
    let illegal = "HadoopIllegalArgumentException";
    let invalid = |name: &str| {
        format!("concat: source file /d/{name} is invalid or empty or underConstruction")
    };
    let cases: [(&[&str], &str, String); 8] = [
        (&[], "IllegalArgumentException", "No sources given".into()),
        (&["none"], "FileNotFoundException", "File does not exist: /d/none".into()),
        (&["s"], "FileNotFoundException", "Path is not a file: /d/s".into()),
        (
            &["s/far"],
            illegal,
            "Source file /d/s/far is not in the same directory with the target /d/a".into(),
        ),
        (&["a"], illegal, "concat: the src file /d/a is the same with the target file /d/a".into()),
        (&["empty"], illegal, invalid("empty")),
        (&["open"], illegal, invalid("open")),
        (
            &["e"],
            illegal,
            "Source file /d/e and target file /d/a have different erasure coding policy".into(),
        ),
    ];
    for (sources, class, text) in cases {
        assert_eq!(said(&fs.err(concat(sources))), (class.to_string(), text));
    }
    let twice = said(&fs.err(concat(&["b", "b"]))).1;
    assert_eq!(twice, "concat: at least two of the source files are the same");
    let raw = Concat { target: "/.reserved/raw/d/a".into(), sources: vec!["/d/b".into()] };
    assert_eq!(
        said(&fs.err(raw)).1,
        "Concat operation doesn't support .reserved relative path : /.reserved/raw/d/a"
    );
}
