//! Directories that operators have protected.

use crate::support::{Fs, said};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::{Outcome, Settings};

fn protecting(paths: &[&str], protects_subdirectories: bool) -> Settings {
    let protected_directories = paths.iter().map(|path| path.to_string()).collect();
    Settings { protected_directories, protects_subdirectories, ..Settings::default() }
}

fn delete(path: &str) -> Delete {
    Delete { path: path.into(), recursive: true }
}

fn refusal(message: &str) -> (String, String) {
    ("AccessControlException".into(), message.into())
}

#[test]
fn a_full_protected_directory_stays_where_it_is() {
    let mut fs = Fs::with(protecting(&["/p", "/q/in/er"], false));
    for path in ["/p/a/b", "/q/in/er", "/q/other/x"] {
        fs.mkdirs(path);
    }
    let own = refusal("Cannot delete/rename non-empty protected directory /p");
    assert_eq!(said(&fs.err(delete("/p"))), own);
    assert_eq!(said(&fs.err(Rename { src: "/p".into(), dst: "/r".into() })), own);
    for to_trash in [false, true] {
        let to = RenameTo { src: "/p".into(), dst: "/r".into(), overwrite: false, to_trash };
        assert_eq!(said(&fs.err(to)), own);
    }
    // What is in it goes, and then itself; an empty one protects nothing above it either.
    fs.delete("/p/a");
    fs.delete("/p");
    fs.ok(Rename { src: "/q".into(), dst: "/r".into() });
    fs.ok(Rename { src: "/r".into(), dst: "/q".into() });
    fs.write("/q/in/er/f", &[]);
    let inner = refusal("Cannot delete/rename non-empty protected subdirectory /q/in/er");
    assert_eq!(said(&fs.err(delete("/q"))), inner);
    assert_eq!(said(&fs.err(delete("/q/in"))), inner);
    fs.delete("/q/other");
    fs.delete("/q/in/er/f");
    assert!(matches!(fs.delete("/q"), Outcome::Removed { done: true, .. }));
}

#[test]
fn what_is_below_is_protected_if_that_is_switched_on() {
    let mut fs = Fs::with(protecting(&["/p"], true));
    fs.mkdirs("/p/a/b/c");
    fs.mkdirs("/p/a/empty");
    let below = refusal("Cannot delete/rename subdirectory under protected subdirectory /p");
    assert_eq!(said(&fs.err(delete("/p/a"))), below);
    assert_eq!(said(&fs.err(delete("/p/a/b"))), below);
    fs.delete("/p/a/empty");
    // As long as the settings say so.
    fs.ok(Configure { settings: protecting(&[], true).into() });
    fs.delete("/p/a");
}
