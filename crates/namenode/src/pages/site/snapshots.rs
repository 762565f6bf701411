//! The page of snapshottable directories and their snapshots.

use cairn_namespace::Caller;
use cairn_namespace::snapshot::listing::{self, SnapshotStatus};
use cairn_net::page::Region;
use cairn_net::page::html::{Table, escape};
use cairn_net::page::text::{number, time};

use super::super::seen::Pages;
use super::asked::address;
use super::frame::region;

/// Directories that are shown, and snapshots of all of them together.
const SHOWN: usize = 200;

pub(super) fn regions(pages: &Pages) -> Vec<Region> {
    let (directories, snapshots) = look(pages);
    vec![region("directories", directories), region("snapshots", snapshots)]
}

fn look(pages: &Pages) -> (String, String) {
    let caller = Caller::system();
    let found = pages.node.ns.read(|store| {
        let directories = listing::snapshottable_directories(store, &caller)?;
        let mut all: Vec<(String, u32, Vec<SnapshotStatus>)> = Vec::new();
        let mut left = SHOWN;
        for directory in directories.iter().take(SHOWN) {
            let path = match directory.parent.as_str() {
                "" => "/".to_string(),
                "/" => format!("/{}", directory.inode.name),
                parent => format!("{parent}/{}", directory.inode.name),
            };
            let mut snapshots = match left {
                0 => Vec::new(),
                _ => listing::snapshots(store, &caller, &path)?.1,
            };
            snapshots.truncate(left);
            left -= snapshots.len();
            all.push((path, directory.count, snapshots));
        }
        Ok::<_, cairn_namespace::NamespaceError>(all)
    });
    let all = match found {
        Ok(all) => all,
        Err(error) => return (format!("<p>{}</p>", escape(&error.to_string())), String::new()),
    };
    let mut directories = Table::new("Snapshottable directories", &["Directory", "#Snapshots"]);
    let mut snapshots = Table::new("Snapshots", &["Snapshot", "Made", "Note"]);
    for (path, count, listed) in &all {
        directories.row().html(&to(path)).figure(&number(u64::from(*count)));
        for snapshot in listed {
            let place = format!("{}/.snapshot/{}", path.trim_end_matches('/'), snapshot.inode.name);
            let note = if snapshot.deleted { "goes when those before it are gone" } else { "" };
            snapshots.row().html(&to(&place)).text(&time(snapshot.inode.mtime)).text(note);
        }
    }
    let none = "There are none: hdfs dfsadmin -allowSnapshot makes a directory one.";
    (directories.end(none), snapshots.end("There are none."))
}

fn to(path: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(&address(path, None, &[])), escape(path))
}
