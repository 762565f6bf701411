use super::*;
use crate::journal::offline::check_folder;
use crate::journal::{Namesystem, NamesystemOptions};
use cairn_namespace::query;
use std::path::PathBuf;

const CACHE_LEN: usize = 16 << 20;
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
        import(&self.name(), None, &self.made(), CACHE_LEN)
    }

    fn is_made(&self) -> bool {
        self.made().is_dir() && fs::read_dir(self.made()).unwrap().next().is_some()
    }

    /// A part of the log that begins behind the image, with these operations.
    fn edits(&self, operations: &[u8]) -> PathBuf {
        let path = self.image.with_file_name(format!("edits_inprogress_{:019}", self.last + 1));
        let mut bytes = (-67i32).to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        for code in operations {
            bytes.push(*code);
            bytes.extend(12u32.to_be_bytes());
            bytes.extend((self.last + 1).to_be_bytes());
            bytes.extend([0; 4]);
        }
        bytes.extend([0xff; 1000]);
        fs::write(&path, bytes).unwrap();
        path
    }
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

#[test]
fn nothing_is_half_imported() {
    // It has snapshots and a cache pool.
    let folder = Folder::of("hadoop-3.5.0.fsimage");
    let error = folder.import().unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ImportError::Refused(_)), "{text}");
    assert!(text.contains("snapshots") && text.contains("cache pools"), "{text}");
    assert!(!folder.is_made());
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
    let old = import(&folder.image, None, &folder.made(), CACHE_LEN);
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
