//! The walk over a tree, a page of a directory at a time.

use super::check::Check;
use super::stop::Stop;
use cairn_namespace::query::{self, FileStatus};
use cairn_namespace::snapshot::{self, DOT_SNAPSHOT};

/// After so many files and directories what was found is sent. Source: Hadoop 3.5.0
/// `NamenodeFsck#check`.
const FLUSH_EVERY: u64 = 1000;

/// A directory that the walk is in.
struct Level {
    path: String,
    entries: std::vec::IntoIter<FileStatus>,
    /// Where the next page begins.
    after: String,
    more: bool,
}

impl Check {
    /// Looks at what is at `path` and below it.
    pub(super) async fn walk(&mut self, path: &str, status: FileStatus) -> Result<(), Stop> {
        let mut levels: Vec<Level> = Vec::new();
        levels.extend(self.visit(path.to_string(), status).await?);
        while let Some(level) = levels.last_mut() {
            if let Some(entry) = level.entries.next() {
                let separator = if level.path.ends_with('/') { "" } else { "/" };
                let path = format!("{}{separator}{}", level.path, entry.inode.name);
                levels.extend(self.visit(path, entry).await?);
            } else if !level.more || !self.next_page(level)? {
                levels.pop();
            }
        }
        Ok(())
    }

    /// Whether snapshots of a directory may be taken. The root's flag says so always.
    fn has_snapshots(&self, status: &FileStatus) -> Result<bool, Stop> {
        let id = status.inode.id;
        let root = self.node.ns.read(|store| snapshot::root(store, id))?;
        Ok(status.snapshottable && root.is_some())
    }

    /// Reads the next page of a directory. Returns whether there is one.
    fn next_page(&self, level: &mut Level) -> Result<bool, Stop> {
        let limit = self.node.config.listing_limit;
        let listing = self.node.ns.read(|store| {
            query::get_listing(store, &self.caller, &level.path, level.after.as_bytes(), limit)
        })?;
        // Deleted, or a file by now: nothing that was seen is left to be told of.
        let listing =
            listing.filter(|l| l.entries.first().is_none_or(|e| !e.inode.name.is_empty()));
        let Some(listing) = listing else { return Ok(false) };
        level.more = listing.remaining > 0;
        level.after = listing.entries.last().map_or_else(String::new, |e| e.inode.name.clone());
        level.entries = listing.entries.into_iter();
        Ok(true)
    }

    /// Tells of a file, or enters a directory.
    async fn visit(&mut self, path: String, status: FileStatus) -> Result<Option<Level>, Stop> {
        let seen = self.directories + self.replicated.files + self.striped.files;
        if seen.is_multiple_of(FLUSH_EVERY) {
            self.out.print("\n");
            self.out.flush().await?;
        }
        if !status.inode.is_directory() {
            self.check_file(&path).await?;
            self.out.pass_on().await?;
            return Ok(None);
        }
        if self.options.snapshots && self.has_snapshots(&status)? {
            let separator = if path.ends_with('/') { "" } else { "/" };
            let names = format!("{path}{separator}{DOT_SNAPSHOT}");
            let status = FileStatus { snapshottable: false, ..status };
            // No deeper than once: below a snapshottable directory is no other.
            Box::pin(self.walk(&names, status)).await?;
        }
        if self.options.files {
            self.out.print(&format!("{path} <dir>\n"));
        }
        self.directories += 1;
        self.out.pass_on().await?;
        Ok(Some(Level { path, entries: Vec::new().into_iter(), after: String::new(), more: true }))
    }
}
