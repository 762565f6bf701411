//! The page of a file: what it is, and where its blocks and groups are, drawn unit by unit.

use std::fmt::Write as _;

use cairn_net::page::Region;
use cairn_net::page::html::{Facts, encode, escape};
use cairn_net::page::text::{bytes, number, time};
use cairn_redundancy::{
    BlockFacts, BlockLookup, BlockState, Cluster, Layout, Now, Replica, Standing,
};
use cairn_stripe::{BlockId, UnitIndex};
use cairn_wire::proto::hdfs as pb;

use super::asked::{Asked, layout, mode};
use super::frame::region;
use crate::node::NameNode;

/// Blocks or groups on a page.
const SHOWN: usize = 12;

pub(super) async fn regions(
    node: &NameNode,
    asked: &Asked<'_>,
    status: &pb::HdfsFileStatusProto,
) -> Result<Vec<Region>, String> {
    let download =
        format!("{}?op=OPEN&user.name={}", asked.web_path(&asked.path), encode(&asked.user));
    let mut facts = Facts::default()
        .text("Size", &format!("{} ({} bytes)", bytes(status.length), number(status.length)))
        .text("Layout", &layout(status))
        .text("Owner and group", &format!("{}, {}", status.owner, status.group))
        .text("Mode", &mode(status))
        .text("Changed", &time(status.modification_time))
        .text("Read", &time(status.access_time))
        .text("Block size", &bytes(status.blocksize()));
    if node.config.web.is_some() {
        facts = facts
            .html("Bytes", &format!("<a href=\"{}\" download>Download</a>", escape(&download)));
    }
    Ok(vec![region("facts", facts.end()), region("groups", groups(node, asked, status).await?)])
}

/// The blocks or groups from the offset that `at` says on.
async fn groups(
    node: &NameNode,
    asked: &Asked<'_>,
    status: &pb::HdfsFileStatusProto,
) -> Result<String, String> {
    let offset = asked.request.param("at").and_then(|at| at.parse().ok()).unwrap_or(0);
    let data_units = status.ec_policy.as_ref().and_then(|policy| policy.schema.as_ref());
    let of_group = status
        .blocksize()
        .saturating_mul(data_units.map_or(1, |schema| u64::from(schema.data_units)));
    let ask = pb::GetBlockLocationsRequestProto {
        src: asked.path.clone(),
        offset,
        length: of_group.saturating_mul(SHOWN as u64).max(1),
        ..Default::default()
    };
    let answer: pb::GetBlockLocationsResponseProto = asked.call("getBlockLocations", &ask).await?;
    let found = answer.locations.unwrap_or_default();
    let mut out = String::from("<h2>Where it is</h2>");
    if found.blocks.is_empty() {
        out.push_str("<p>It has no bytes.</p>");
        return Ok(out);
    }
    let ids = found
        .blocks
        .iter()
        .take(SHOWN)
        .map(|block| (BlockId(block.b.block_id as i64), block.offset));
    let ids: Vec<(BlockId, u64)> = ids.collect();
    let now = node.now();
    let drawn: Vec<String> = node.see(|cluster, lookup| {
        let draw = |(id, offset): &(BlockId, u64)| {
            let Some(facts) = lookup.block(id.group()) else { return String::new() };
            let drawing = Drawing { cluster, lookup, now };
            drawing.block(id.group(), &facts, *offset)
        };
        ids.iter().map(draw).collect()
    });
    out.push_str(&drawn.concat());
    let next =
        found.blocks.get(ids.len() - 1).map(|last| last.offset.saturating_add(last.b.num_bytes()));
    if let Some(next) = next.filter(|next| *next < status.length) {
        let to = escape(&asked.to(&asked.path, &[("at", &next.to_string())]));
        let _ =
            write!(out, "<p><a rel=\"next\" href=\"{to}\">From byte {} on</a></p>", number(next));
    }
    Ok(out)
}

/// What drawing a block asks.
struct Drawing<'a> {
    cluster: &'a Cluster,
    lookup: &'a dyn BlockLookup,
    now: Now,
}

impl Drawing<'_> {
    /// A block or group of a file, and the contiguous group that it is in.
    fn block(&self, id: BlockId, facts: &BlockFacts, offset: u64) -> String {
        let kind = match facts.layout {
            Layout::Striped { k, m, .. } => format!("group of {k} data and {m} parity units"),
            _ => "block".to_string(),
        };
        let state = match facts.state {
            BlockState::Complete => "",
            BlockState::Committed => ", not complete yet",
            BlockState::UnderConstruction => ", being written",
            BlockState::UnderRecovery => ", being recovered",
        };
        let mut out = format!(
            "<section class=\"group\"><h3>{} – {kind} of {} at byte {}{state}</h3><ul class=\"units\">",
            escape(&id.to_string()),
            bytes(facts.len),
            number(offset)
        );
        let replicas = self.cluster.replicas(id, facts);
        match (facts.layout, facts.state) {
            (_, BlockState::UnderConstruction | BlockState::UnderRecovery) => {
                self.pipeline(&mut out, id)
            }
            (Layout::Striped { k, m, .. }, _) => {
                for unit in (0..k + m).map(UnitIndex) {
                    let of = replicas.iter().filter(|replica| replica.unit == unit);
                    let name = unit_name(unit, k);
                    self.unit(&mut out, &name, unit.0 >= k, facts.has_bytes(unit), of);
                }
            }
            (_, _) => {
                let copies = facts.expected_units().max(replicas.len());
                for index in 0..copies {
                    let name = format!("replica {}", index + 1);
                    self.unit(
                        &mut out,
                        &name,
                        false,
                        true,
                        replicas.get(index..=index).unwrap_or_default(),
                    );
                }
            }
        }
        out.push_str("</ul>");
        if let Some((handle, slot)) = facts.group {
            self.contiguous(&mut out, handle, slot);
        }
        out.push_str("</section>");
        out
    }

    /// Where a block is being written.
    fn pipeline(&self, out: &mut String, id: BlockId) {
        for (storage, unit) in self.cluster.pipeline(id) {
            let node = self.cluster.node(self.cluster.storage(storage).node);
            let name = escape(&node.name());
            let _ = write!(out, "<li class=\"warn\"><b>{}</b>{name}, being written</li>", unit.0);
        }
    }

    /// The group that keeps a block safe: its members and its parities.
    fn contiguous(&self, out: &mut String, handle: BlockId, own: UnitIndex) {
        let Some(group) = self.lookup.group(handle) else { return };
        let state = if group.formed { "keeps it safe" } else { "is being encoded" };
        let _ = write!(
            out,
            "<h3>Contiguous group {} {state}</h3><ul class=\"units\">",
            escape(&handle.to_string())
        );
        for (slot, member) in (0..group.k).zip(&group.slots) {
            let name = match slot == own.0 {
                true => format!("member {slot}, this block"),
                false => format!("member {slot}"),
            };
            let Some(member) = member else {
                self.unit(out, &name, false, false, &[]);
                continue;
            };
            let facts = self.lookup.block(member.id);
            let replicas = facts.map(|facts| self.cluster.replicas(member.id, &facts));
            self.unit(out, &name, false, true, &replicas.unwrap_or_default());
        }
        let parities = self.cluster.replicas(handle, &group.facts());
        for unit in (group.k..group.k + group.m).map(UnitIndex) {
            let of = parities.iter().filter(|replica| replica.unit == unit);
            self.unit(out, &unit_name(unit, group.k), true, group.formed, of);
        }
        out.push_str("</ul>");
    }

    /// A unit with its places; one without bytes has none.
    fn unit<'a>(
        &self,
        out: &mut String,
        name: &str,
        is_parity: bool,
        has_bytes: bool,
        places: impl IntoIterator<Item = &'a Replica>,
    ) {
        let parity = if is_parity { " parity" } else { "" };
        let (mut tone, mut told) = ("bad", Vec::new());
        for replica in places {
            let node = self.cluster.node(replica.node);
            let (state, of_place) = match replica.standing {
                _ if !node.alive => ("its DataNode is dead".to_string(), "warn"),
                Standing::Corrupt(reason) => (format!("bad: {reason}"), "bad"),
                Standing::Live if self.cluster.is_stale(node, self.now) => {
                    ("its DataNode is silent".to_string(), "warn")
                }
                Standing::Live => ("good".to_string(), "good"),
                Standing::ReadOnly => ("good, read only".to_string(), "good"),
                Standing::Excess => ("to be deleted".to_string(), "calm"),
                Standing::Decommissioning | Standing::Decommissioned => {
                    ("leaves".to_string(), "warn")
                }
                Standing::EnteringMaintenance | Standing::InMaintenance => {
                    ("in maintenance".to_string(), "warn")
                }
            };
            // The best of its places says how a unit is.
            let rank =
                |tone: &str| ["bad", "calm", "warn", "good"].iter().position(|one| *one == tone);
            if rank(of_place) > rank(tone) {
                tone = of_place;
            }
            let kind = self.cluster.storage(replica.storage).storage_type.name();
            told.push(format!(
                "{} {}: {}, {kind}",
                escape(&node.rack),
                escape(&node.name()),
                escape(&state)
            ));
        }
        if told.is_empty() {
            let (of_nothing, text) =
                if has_bytes { ("bad", "on no DataNode") } else { ("calm", "has no bytes") };
            (tone, told) = (of_nothing, vec![text.to_string()]);
        }
        let _ = write!(out, "<li class=\"{tone}{parity}\"><b>{name}</b>{}</li>", told.join("<br>"));
    }
}

fn unit_name(unit: UnitIndex, k: u8) -> String {
    match unit.0.checked_sub(k) {
        None => format!("data {}", unit.0),
        Some(parity) => format!("parity {parity}"),
    }
}
