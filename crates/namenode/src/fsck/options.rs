//! What a check is asked for, in the words of `DFSck`'s query.

/// Options of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Where the walk begins.
    pub path: String,
    /// Blocks to look at instead of a walk, as they were named.
    pub block_ids: Option<Vec<String>>,
    /// Number of lost blocks to skip in their list.
    pub cookie: Option<String>,
    /// One JSON object a line instead of text; Cairn's own.
    pub json: bool,
    /// Copy what can be read of damaged files to `/lost+found`.
    pub move_damaged: bool,
    /// Delete damaged files.
    pub delete_damaged: bool,
    /// Queue blocks on too few racks to be moved.
    pub replicate: bool,
    /// Name every file.
    pub files: bool,
    /// Check files that are being written too.
    pub open_files: bool,
    /// Name every block.
    pub blocks: bool,
    /// Name where each is.
    pub locations: bool,
    /// The same, with racks.
    pub racks: bool,
    /// The same, with how each counts.
    pub replica_details: bool,
    /// The same, with upgrade domains.
    pub upgrade_domains: bool,
    /// Tell of nodes in maintenance.
    pub maintenance: bool,
    /// Count blocks by types of storage.
    pub storage_policies: bool,
    /// List lost blocks instead of a walk.
    pub list_corrupt: bool,
    /// Look at the snapshots of the directories that have some.
    pub snapshots: bool,
    /// Has no effect but a line that says so.
    pub show_progress: bool,
}

impl Options {
    /// Reads a query. What is not known is ignored.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck#NamenodeFsck`.
    pub(super) fn from_query(query: &[(String, String)]) -> Options {
        let mut options = Options { path: "/".to_string(), ..Options::default() };
        // The first value of a repeated parameter counts.
        for (key, value) in query.iter().rev() {
            match key.as_str() {
                "path" => options.path = value.clone(),
                "blockId" => options.block_ids = Some(words(value)),
                "startblockafter" => options.cookie = Some(value.clone()),
                "format" => options.json = value == "json",
                "move" => options.move_damaged = true,
                "delete" => options.delete_damaged = true,
                "replicate" => options.replicate = true,
                "files" => options.files = true,
                "openforwrite" => options.open_files = true,
                "blocks" => options.blocks = true,
                "locations" => options.locations = true,
                "racks" => options.racks = true,
                "replicadetails" => options.replica_details = true,
                "upgradedomains" => options.upgrade_domains = true,
                "maintenance" => options.maintenance = true,
                "storagepolicies" => options.storage_policies = true,
                "listcorruptfileblocks" => options.list_corrupt = true,
                "includeSnapshots" => options.snapshots = true,
                "showprogress" => options.show_progress = true,
                _ => {}
            }
        }
        options
    }

    /// Whether each block is followed by its places.
    pub(super) fn show_places(&self) -> bool {
        self.locations || self.racks || self.replica_details || self.upgrade_domains
    }
}

/// Splits as Java does: at each blank, without empty words at the end.
fn words(text: &str) -> Vec<String> {
    text.trim_end_matches(' ').split(' ').map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read() {
        let query = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string()));
            Options::from_query(&pairs.collect::<Vec<_>>())
        };
        let plain = query(&[("ugi", "root")]);
        assert_eq!(plain, Options { path: "/".to_string(), ..Options::default() });
        let options = query(&[("path", "/a"), ("path", "/b"), ("files", "1"), ("blocks", "1")]);
        assert!(options.files && options.blocks && !options.show_places());
        assert_eq!(options.path, "/a");
        assert!(query(&[("racks", "1")]).show_places());
        let blocks = query(&[("blockId", "blk_1 blk_2 ")]).block_ids.unwrap();
        assert_eq!(blocks, ["blk_1", "blk_2"]);
    }
}
