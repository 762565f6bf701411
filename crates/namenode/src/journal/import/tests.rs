use super::*;
use crate::journal::export::{Target, export};
use crate::journal::offline::check_folder;
use crate::journal::{Namesystem, NamesystemOptions};
use cairn_fsimage::write::{Common, Directory, ImageWriter};
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::snapshot::DeleteSnapshot;
use cairn_namespace::store::Table;
use cairn_namespace::store::conformance::dump;
use cairn_namespace::{Caller, Entry, Outcome, query};
use std::collections::HashMap;
use std::path::PathBuf;

const CACHE_LEN: usize = 16 << 20;
/// Snapshots that the log leaves.
const SNAPSHOTS: [(&str, &str); 8] = [
    ("/snap", "third"),
    ("/log/snapshots", "last"),
    ("/moves", "s2"),
    ("/snap", "first"),
    ("/moves", "s1"),
    ("/log/snapshots", "one"),
    ("/snap", "fourth"),
    ("/moves", "s3"),
];
/// Paths in snapshots that Hadoop's client saw when the log had ended.
const IN_SNAPSHOTS: usize = 53;
const VERSION: &str = "namespaceID=NS\nblockpoolID=BP-1-127.0.0.1-2\nstorageType=NAME_NODE\ncTime=3\n\
                       clusterID=CID-4\nlayoutVersion=-67\n";

/// A file that Hadoop has written.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fsimage/tests/golden").join(name)
}

/// A folder like that of Hadoop's NameNode, with an image.
struct Folder {
    dir: tempfile::TempDir,
    image: PathBuf,
    last: u64,
}

impl Folder {
    fn of(name: &str) -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let mut image = Image::open(File::open(golden(name)).unwrap()).unwrap();
        let counters = Counters::read(image.required(sections::NS_INFO).unwrap()).unwrap();
        let last = counters.transaction;
        let current = dir.path().join("name/current");
        fs::create_dir_all(&current).unwrap();
        let image = current.join(format!("fsimage_{last:019}"));
        fs::copy(golden(name), &image).unwrap();
        let version = VERSION.replace("NS", &counters.namespace_id.to_string());
        fs::write(current.join("VERSION"), version).unwrap();
        Folder { dir, image, last }
    }

    fn name(&self) -> PathBuf {
        self.dir.path().join("name")
    }

    fn made(&self) -> PathBuf {
        self.dir.path().join("made")
    }

    fn import(&self) -> Result<Imported, ImportError> {
        import(&Sources { image: self.name(), ..Sources::default() }, &self.made(), CACHE_LEN)
    }

    /// Imports with the log in the same folder.
    fn import_with_log(&self) -> Result<Imported, ImportError> {
        let (image, edits) = (self.name(), Some(self.name()));
        import(&Sources { image, version: None, edits }, &self.made(), CACHE_LEN)
    }

    /// Puts what Hadoop has done since the image beside it.
    fn put_log(&self, name: &str) -> PathBuf {
        let path = self.image.with_file_name(format!("edits_inprogress_{:019}", self.last + 1));
        fs::copy(golden(name), &path).unwrap();
        path
    }

    fn is_made(&self) -> bool {
        self.made().is_dir() && fs::read_dir(self.made()).unwrap().next().is_some()
    }

    /// A part of the log that begins behind the image, with these operations, which have no fields.
    fn edits(&self, operations: &[u8]) -> PathBuf {
        let path = self.image.with_file_name(format!("edits_inprogress_{:019}", self.last + 1));
        let mut bytes = (-67i32).to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        for (code, id) in operations.iter().zip(self.last + 1..) {
            let mut frame = vec![*code];
            frame.extend(12u32.to_be_bytes());
            frame.extend(id.to_be_bytes());
            bytes.extend(&frame);
            bytes.extend(crc32(&frame).to_be_bytes());
        }
        bytes.extend([0xff; 1000]);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// The CRC-32 of the log, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let shift = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| shift(crc)))
}

#[test]
fn what_hadoop_has_written_is_whole_here() {
    let folder = Folder::of("hadoop-3.5.0-plain.fsimage");
    folder.edits(&[24]);
    let imported = folder.import().unwrap();
    assert_eq!(imported.identity.block_pool_id, "BP-1-127.0.0.1-2");
    assert_eq!((imported.counts.files, imported.counts.directories), (15, 11));
    assert_eq!((imported.counts.open, imported.transaction), (1, folder.last));
    let checked = check_folder(&folder.made(), CACHE_LEN).unwrap();
    assert_eq!(checked.problems, Vec::<String>::new());
    assert_eq!((checked.checked.inodes, checked.checked.blocks), (26, imported.counts.blocks));

    let ns = Namesystem::open(&folder.made(), NamesystemOptions::default()).unwrap();
    assert!(ns.restored().is_some(), "replicas may be deleted that the image does not know");
    let caller = cairn_namespace::Caller::system();
    let quota = ns.read(|store| query::content_summary(store, &caller, "/quota")).unwrap();
    assert_eq!(quota.names_max, Some(1000));
    ns.close();
}

/// What Hadoop's client saw of a path, and its words by key.
fn facts(line: &str) -> Option<(String, HashMap<&str, &str>)> {
    let (path, words) = line.strip_prefix("path ")?.split_once(' ')?;
    let words = words.split(' ').filter_map(|word| word.split_once('='));
    Some((path.replace("%20", " "), words.collect()))
}

/// Imports an image with its facts, and compares what is here; then deletes these snapshots, of which nothing may be left.
fn check_snapshots(name: &str, snapshots: &[(&str, &str)], in_snapshots: usize) {
    let folder = Folder::of(&format!("{name}.fsimage"));
    let imported = folder.import().unwrap();
    check_imported(&folder, &imported, name, snapshots, in_snapshots);
}

fn check_imported(
    folder: &Folder,
    imported: &Imported,
    name: &str,
    snapshots: &[(&str, &str)],
    in_snapshots: usize,
) {
    assert_eq!(imported.counts.snapshots, snapshots.len() as u64);
    let checked = check_folder(&folder.made(), CACHE_LEN).unwrap();
    assert_eq!(checked.problems, Vec::<String>::new());
    let ns = Namesystem::open(&folder.made(), NamesystemOptions::default()).unwrap();
    let caller = Caller::system();
    let text = fs::read_to_string(golden(&format!("{name}.facts"))).unwrap();
    let mut seen = 0;
    for (path, words) in text.lines().filter_map(facts) {
        let status = ns.read(|store| query::get_file_info(store, &caller, &path)).unwrap();
        let status = status.unwrap_or_else(|| panic!("{path} is not there"));
        let inode = &status.inode;
        let mut told = vec![
            ("id", inode.id.0.to_string()),
            ("owner", format!("{}:{}", inode.owner, inode.group)),
            ("mode", format!("{:o}", inode.mode)),
            ("modified", inode.mtime.to_string()),
            ("accessed", inode.atime.to_string()),
        ];
        if let Some(file) = inode.file() {
            told.push(("length", file.len.to_string()));
            told.extend(file.redundancy.copies().map(|copies| ("replication", copies.to_string())));
            let blocks = ns.read(|store| query::get_blocks(store, &caller, &path, 0, u64::MAX, 0));
            let blocks = blocks.unwrap().blocks.into_iter().map(|(_, block)| block);
            let ids: Vec<String> = blocks.map(|block| format!("{}_", block.id.0)).collect();
            let wanted = words["blocks"].split(['[', ',']).filter(|block| block.contains('_'));
            let wanted: Vec<&str> = wanted.collect();
            // What follows in a list has a blank before it, at which words end.
            let is_alike = wanted.iter().zip(&ids).all(|(wanted, id)| wanted.starts_with(id));
            assert!(is_alike, "{path} has {ids:?} and not {wanted:?}");
        }
        for (key, value) in &told {
            assert_eq!(words[key], value, "{key} of {path}");
        }
        let listed = inode.is_directory().then(|| {
            let listing = ns.read(|store| query::get_listing(store, &caller, &path, &[], 99));
            listing.unwrap().unwrap().entries.len()
        });
        let above = if path == "/" { "/".to_string() } else { format!("{path}/") };
        let children = text.lines().filter_map(facts).filter(|(other, _)| {
            other.strip_prefix(&above).is_some_and(|name| !name.is_empty() && !name.contains('/'))
        });
        assert!(listed.is_none_or(|listed| listed == children.count()), "children of {path}");
        seen += usize::from(path.contains("/.snapshot/"));
    }
    assert_eq!(seen, in_snapshots);
    for (path, name) in snapshots {
        let (path, name) = (path.to_string(), name.to_string());
        let command = DeleteSnapshot { path, name }.into();
        let (now_ms, elapsed_ms, caller) = (1_900_000_000_000, 5, Caller::system());
        ns.submit_blocking(Entry { now_ms, elapsed_ms, caller, call: None, command }).unwrap();
    }
    let purge = || {
        let command = Purge { limit: 1000 }.into();
        let (now_ms, elapsed_ms, caller) = (1_900_000_000_000, 6, Caller::system());
        ns.submit_blocking(Entry { now_ms, elapsed_ms, caller, call: None, command }).unwrap()
    };
    while matches!(purge(), Outcome::Removed { more: true, .. }) {}
    let left = ns.read(|store| dump(store));
    for (table, key, value) in left {
        let is_left = match table {
            Table::Version | Table::VersionOf | Table::Snapshot | Table::SnapshotGarbage => true,
            // That something was moved is known as long as it is there.
            Table::SnapshotSeen => value.len() > 4,
            _ => false,
        };
        assert!(!is_left, "{table:?} has {key:?}");
    }
    ns.close();
    let checked = check_folder(&folder.made(), CACHE_LEN).unwrap();
    assert_eq!(checked.problems, Vec::<String>::new());
}

#[test]
fn snapshots_have_what_hadoops_client_saw() {
    check_snapshots("hadoop-3.5.0", &[("/snap", "first"), ("/snap", "second")], 12);
}

#[test]
fn what_was_moved_between_snapshots_is_where_each_saw_it() {
    let snapshots = [
        ("/snap", "second"),
        ("/moves", "s2"),
        ("/moves", "s1"),
        ("/snap", "first"),
        ("/snap", "third"),
        ("/moves", "s3"),
    ];
    check_snapshots("hadoop-3.5.0-moves", &snapshots, 42);
}

#[test]
fn what_was_done_since_the_image_is_done_here() {
    let name = "hadoop-3.5.0-log";
    let folder = Folder::of(&format!("{name}.fsimage"));
    folder.put_log(&format!("{name}.edits"));
    assert!(matches!(folder.import(), Err(ImportError::Later { .. })));
    let imported = folder.import_with_log().unwrap();
    assert!(imported.transaction > folder.last + 300, "{}", imported.transaction);
    assert_eq!(imported.counts.open, 4);
    check_imported(&folder, &imported, name, &SNAPSHOTS, IN_SNAPSHOTS);
}

#[test]
fn snapshots_that_were_exported_are_what_they_were() {
    let name = "hadoop-3.5.0-log";
    let first = Folder::of(&format!("{name}.fsimage"));
    first.put_log(&format!("{name}.edits"));
    let imported = first.import_with_log().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let target = Target::Folder(dir.path().join("name"));
    let exported = export(&first.made(), &target, CACHE_LEN).unwrap();
    let counts = exported.written.counts;
    assert_eq!((counts.snapshots, counts.open), (imported.counts.snapshots, imported.counts.open));
    assert_eq!(counts.blocks, imported.counts.blocks);
    let (image, last) = (exported.image, exported.transaction);
    let again = Folder { dir, image, last };
    let imported = again.import().unwrap();
    assert_eq!(imported.counts, counts);
    check_imported(&again, &imported, name, &SNAPSHOTS, IN_SNAPSHOTS);
}

#[test]
fn a_log_that_is_not_whole_is_refused_and_nothing_is_made() {
    let name = "hadoop-3.5.0-log";
    let of = |make: &dyn Fn(&Folder, PathBuf)| {
        let folder = Folder::of(&format!("{name}.fsimage"));
        let path = folder.put_log(&format!("{name}.edits"));
        make(&folder, path);
        let done = folder.import_with_log();
        assert!(done.is_ok() || !folder.is_made());
        (folder, done)
    };
    // One transaction is missing at the beginning.
    let (folder, done) = of(&|folder, path| {
        let later = path.with_file_name(format!("edits_inprogress_{:019}", folder.last + 2));
        fs::rename(&path, later).unwrap();
    });
    let is_named =
        |found, wanted| matches!(found, Err(ImportError::Gap { wanted: of, .. }) if of == wanted);
    assert!(is_named(done, folder.last + 1));
    // A part that was ended ends early.
    let (_, done) = of(&|folder, path| {
        let (first, last) = (folder.last + 1, folder.last + 9000);
        fs::rename(&path, path.with_file_name(format!("edits_{first:019}-{last:019}"))).unwrap();
    });
    assert!(matches!(done, Err(ImportError::Short { .. })));
    // Something that is not known.
    let (_, done) = of(&|folder, _| _ = folder.edits(&[24, 53]));
    let text = done.unwrap_err().to_string();
    assert!(text.contains("operation 53, which is not known"), "{text}");
    // Its writer has stopped within an operation: that one is left out, and said.
    let (folder, done) = of(&|_, path| {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    });
    let done = done.unwrap();
    assert!(done.transaction > folder.last + 100 && done.left_out.len() == 2, "{done:?}");
    assert_eq!(check_folder(&folder.made(), CACHE_LEN).unwrap().problems, Vec::<String>::new());
}

#[test]
fn nothing_is_half_imported() {
    // An inode that no directory has.
    let folder = Folder::of("hadoop-3.5.0-plain.fsimage");
    fs::write(&folder.image, without_children()).unwrap();
    let error = folder.import().unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ImportError::Refused(_)), "{text}");
    assert!(text.contains("inodes that no directory has"), "{text}");
    assert!(!folder.is_made());
}

/// An image of the same file system as the golden one, of which no directory has its file.
fn without_children() -> Vec<u8> {
    let mut golden =
        Image::open(File::open(golden("hadoop-3.5.0-plain.fsimage")).unwrap()).unwrap();
    let counters = Counters::read(golden.required(sections::NS_INFO).unwrap()).unwrap();
    let common = |id: u64, name: &'static [u8]| Common {
        id,
        name,
        owner: "root",
        group: "super",
        mode: 0o755,
        acl: &[],
        xattrs: &[],
        modified_ms: 1,
    };
    let mut image = ImageWriter::begin(Vec::new()).unwrap();
    let written: std::io::Result<()> =
        image.section(sections::NS_INFO, |to| to.counters(&counters));
    written.unwrap();
    let written: std::io::Result<()> = image.section(sections::INODE, |to| {
        to.inode_head(16386, 2)?;
        to.directory(&common(16385, b""), &Directory::default())?;
        to.directory(&common(16386, b"lost"), &Directory::default())
    });
    written.unwrap();
    image.end().unwrap()
}

#[test]
fn an_image_that_hadoop_has_gone_on_from_is_refused() {
    for (operations, is_later) in [(&[][..], false), (&[24, 23], false), (&[24, 9], true)] {
        let folder = Folder::of("hadoop-3.5.0-plain.fsimage");
        let path = folder.edits(operations);
        match folder.import() {
            Ok(_) => assert!(!is_later, "{operations:?}"),
            Err(ImportError::Later { path: named, .. }) => assert!(is_later && named == path),
            Err(error) => panic!("{error}"),
        }
    }
    let folder = Folder::of("hadoop-3.5.0-plain.fsimage");
    let newer = folder.image.with_file_name(format!("fsimage_{:019}", folder.last + 5));
    fs::copy(&folder.image, newer).unwrap();
    let sources = Sources { image: folder.image.clone(), ..Sources::default() };
    let old = import(&sources, &folder.made(), CACHE_LEN);
    assert!(matches!(old, Err(ImportError::Later { .. })));
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let folder = Folder::of("hadoop-3.5.0-plain.fsimage");
    let digest = folder.image.with_file_name(format!("fsimage_{:019}.md5", folder.last));
    fs::write(&digest, "00000000000000000000000000000000 *fsimage\n").unwrap();
    assert!(matches!(folder.import(), Err(ImportError::Digest { .. })));
    fs::remove_file(digest).unwrap();
    let version = folder.image.with_file_name("VERSION");
    fs::write(&version, VERSION.replace("NS", "1")).unwrap();
    assert!(matches!(folder.import(), Err(ImportError::Mixed { version: 1, .. })));
    fs::remove_file(version).unwrap();
    assert!(matches!(folder.import(), Err(ImportError::NoVersion { .. })));
    assert!(!folder.is_made());
}

#[test]
fn a_folder_that_is_in_use_is_left_alone() {
    let folder = Folder::of("hadoop-3.5.0-plain.fsimage");
    fs::create_dir(folder.made()).unwrap();
    fs::write(folder.made().join("mine"), "").unwrap();
    assert!(matches!(folder.import(), Err(ImportError::NotEmpty { .. })));
    assert!(folder.made().join("mine").exists());
}
