//! `-blockId`: what is known of blocks by their names.

use super::block::{View, finding};
use super::check::Check;
use super::group;
use super::stop::Stop;
use cairn_master::Lookup;
use cairn_namespace::query;
use cairn_namespace::snapshot::paths::path_or_kept;
use cairn_redundancy::BlockLookup;
use cairn_stripe::BlockId;

/// The number in `blk_NUMBER`, with or without a stamp and `.meta`; 0 for other names.
///
/// Source: Hadoop 3.5.0 `Block#getBlockId`.
fn parse_name(name: &str) -> i64 {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = name.strip_prefix("blk_") else { return 0 };
    let (number, stamp) = match rest.split_once('_') {
        Some((number, stamp)) => (number, Some(stamp)),
        None => (rest, None),
    };
    let good = digits(number.strip_prefix('-').unwrap_or(number))
        && stamp.is_none_or(|stamp| stamp.strip_suffix(".meta").is_some_and(digits));
    if good { number.parse().unwrap_or(0) } else { 0 }
}

impl Check {
    /// `-blockId`.
    pub(super) async fn check_blocks(&mut self, names: &[String]) -> Result<(), Stop> {
        self.node.require_superuser(&self.caller, "fsck")?;
        self.tell_start("");
        for name in names {
            if name.contains("blk_") {
                self.out.print("\n");
                self.check_block(name)?;
            } else {
                self.out.print(&format!("Incorrect blockId format: {name}\n"));
            }
            self.out.pass_on().await?;
        }
        Ok(())
    }

    fn check_block(&mut self, name: &str) -> Result<(), Stop> {
        let id = BlockId(parse_name(name)).group();
        let now = self.node.now();
        let replication_min = self.node.config.min_replication;
        let options = &self.options;
        let text = self.node.with_cluster(|cluster, lookup: &Lookup<'_>| {
            cluster.settle(lookup, &[id]);
            let view = View { options, cluster, replication_min, now };
            let (mut text, mut found) = (String::new(), None);
            if let Some(facts) = lookup.block(id).filter(|_| !id.is_parity())
                && let Some(info) = query::get_block(lookup.store, id)?
                && let Some(path) = path_or_kept(lookup.store, info.block.file)?
            {
                text = view.block_text(name, &path, id, &facts);
                found = Some(finding(&view, lookup, (id, &facts), &path));
            }
            let Some(group) = group::of_block(lookup, id)? else {
                return Ok::<_, Stop>(found.map(|finding| (text, finding)));
            };
            if found.is_none() {
                text = format!("Block Id: {name}\nBlock belongs to: no file\n");
            }
            text.push_str(&group::text(&view, lookup, &group));
            let mut finding = found.unwrap_or_else(|| serde_json::json!({"block": name}));
            finding["group"] = group::finding(&view, lookup, &group);
            Ok(Some((text, finding)))
        })?;
        match text {
            Some((text, finding)) => {
                self.out.print(&text);
                self.out.finding(&finding);
            }
            None => {
                tracing::warn!(block = name, "fsck was asked for a block that does not exist");
                self.out.print(&format!("Block {name} does not exist\n"));
                self.out.finding(&serde_json::json!({"block": name, "status": "NONEXISTENT"}));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::parse_name;

    #[test]
    fn names_of_blocks_are_read() {
        for (name, number) in [
            ("blk_17", 17),
            ("blk_-9223372036854775792", -9_223_372_036_854_775_792),
            ("blk_17_1001.meta", 17),
            ("blk_17_1001", 0),
            ("blk_", 0),
            ("blk_-", 0),
            ("blk_1x", 0),
            ("xblk_1", 0),
            ("blk_99999999999999999999", 0),
        ] {
            assert_eq!(parse_name(name), number, "{name}");
        }
    }
}
