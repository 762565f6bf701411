//! The page of erasure coding: policies, how safe blocks and groups are, what is mended, and what cannot be.

use std::time::Duration;

use cairn_namespace::query;
use cairn_net::page::Region;
use cairn_net::page::html::{Table, Tone, badge, card, chart, escape};
use cairn_net::page::text::{bytes, number};
use cairn_redundancy::{BlockLookup, MARGINS, ReplicaCounts};
use cairn_stripe::{PolicyLayout, PolicyState};

use super::super::history;
use super::super::seen::{Lost, Pages, View};
use super::asked::address;
use super::frame::region;
use crate::node::NameNode;
use crate::protocol::client::take_lost;
use crate::refusal::Refusal;

/// Lost blocks and groups that are named, and how long that holds.
const LOST_SHOWN: usize = 50;
const LOST_AGE: Duration = Duration::from_secs(5);

pub(super) fn regions(pages: &Pages) -> Vec<Region> {
    let view = pages.now();
    vec![
        region("margins", margins(&view)),
        region("mending", mending(pages, &view)),
        region("lost", lost(pages, &view)),
        region("policies", policies(&pages.node)),
    ]
}

/// Blocks and groups by how many more losses they survive, as the cluster counts those that it has queued.
fn margins(view: &View) -> String {
    let stats = &view.stats;
    let columns = ["Survive", "#Replicated blocks", "#Groups"];
    let mut table = Table::new("How safe blocks and groups are", &columns);
    let (mut blocks, mut groups) = (0, 0);
    for (class, margin) in stats.margins.iter().enumerate() {
        (blocks, groups) = (blocks + margin.blocks, groups + margin.groups);
        let (tone, text) = match class {
            0 => (Tone::Bad, "nothing more: they are lost".to_string()),
            1 => (Tone::Bad, "no further loss".to_string()),
            2 => (Tone::Warn, "one more loss".to_string()),
            class if class == MARGINS - 1 => {
                (Tone::Calm, format!("{} or more losses, but lack something", class - 1))
            }
            class => (Tone::Warn, format!("{} more losses", class - 1)),
        };
        table.row().text(&text).count(margin.blocks, tone).count(margin.groups, tone);
    }
    let whole = view.totals.blocks.saturating_sub(blocks + groups);
    let mut out = table.end("");
    let (state, told) = match view.is_whole() {
        true => (Tone::Good, "all are whole"),
        false => (Tone::Calm, "whole, or not known yet, or what they lack is on its way"),
    };
    out.push_str(&format!("<p>{} {}</p>", badge(state, &number(whole)), told));
    let spread = stats.replicated.badly_distributed + stats.groups.badly_distributed;
    if spread > 0 {
        out.push_str(&format!("<p>{} of these are on too few racks.</p>", number(spread)));
    }
    out
}

fn mending(pages: &Pages, view: &View) -> String {
    let history = &pages.history;
    let stats = &view.stats;
    let over = |what: &str, samples: usize| {
        let minutes = samples as u64 * history::PERIOD.as_secs() / 60;
        format!("{what} over the last {minutes} minutes")
    };
    let waiting = history.of(|sample| sample.waiting);
    let under_way = history.of(|sample| sample.under_way);
    let mended = history.rate_of(|sample| sample.mended);
    let now = mended.last().copied().unwrap_or_default();
    let cards = [
        card(
            "Wait to be mended",
            &number(stats.scheduled_reconstruction),
            &chart(&waiting, &over("Blocks and groups that wait", waiting.len())),
        ),
        card(
            "Something is on its way",
            &number(stats.pending_reconstruction),
            &chart(
                &under_way,
                &over("Blocks and groups of which something is on its way", under_way.len()),
            ),
        ),
        card(
            "Replicas and units mended",
            &format!("{now:.1} a second"),
            &format!(
                "{}<p class=\"faint\">{} since the start</p>",
                chart(&mended, &over("Replicas and units mended in a second", mended.len())),
                number(stats.mended)
            ),
        ),
    ];
    format!("<h2>Mending</h2><div class=\"cards\">{}</div>", cards.concat())
}

fn lost(pages: &Pages, view: &View) -> String {
    let all = view.stats.replicated.missing + view.stats.groups.missing;
    if all == 0 {
        return "<h2>What cannot be mended</h2><p>Nothing.</p>".to_string();
    }
    let lost = pages.lost.get(LOST_AGE, || look_for_lost(&pages.node));
    let mut table = Table::new("What cannot be mended", &["File", "Block or group", "Why"]);
    for Lost { path, block, why } in lost.iter() {
        table.row().html(&format!(
            "<a href=\"{}\">{}</a>",
            escape(&address(path, None, &[])),
            escape(path)
        ));
        table.text(block).text(why);
    }
    let mut out = table.end("It is being looked for.");
    if all > lost.len() as u64 {
        out.push_str(&format!(
            "<p>{} in all; <code>cairn fsck / -list-corruptfileblocks</code> names them.</p>",
            number(all)
        ));
    }
    out
}

/// Some of what is lost, with why.
fn look_for_lost(node: &NameNode) -> Vec<Lost> {
    let (mut found, mut seen) = (Vec::new(), 0);
    // It looks at some of them at a time, and nobody waits for it.
    let more = take_lost(node, "/", &mut seen, |_, info, path| -> Result<bool, Refusal> {
        found.push((info.block.id, path));
        Ok(found.len() < LOST_SHOWN)
    });
    if more.is_err() {
        return Vec::new();
    }
    node.see(|cluster, lookup| {
        let told = found.into_iter().filter_map(|(id, path)| {
            let facts = lookup.block(id)?;
            let replicas = cluster.replicas(id, &facts);
            let counts = ReplicaCounts::of(facts.layout.is_striped(), &replicas);
            let bad = counts.corrupt;
            let why = match (facts.layout.is_striped(), bad) {
                (true, _) => format!(
                    "{} good units are left, {} are needed; {bad} are bad",
                    counts.found(),
                    facts.data_units()
                ),
                (false, 0) => "no replica is left on any DataNode that is there".to_string(),
                (false, _) => format!("all {bad} replicas that are left are bad"),
            };
            Some(Lost { path, block: id.to_string(), why })
        });
        told.collect()
    })
}

fn policies(node: &NameNode) -> String {
    let columns = [
        "Policy",
        "State",
        "Code",
        "#Data units",
        "#Parity units",
        "#Stored for a byte",
        "Units are made of",
    ];
    let mut table = Table::new("Policies", &columns);
    for info in node.ns.read(|store| query::policies(store)).unwrap_or_default() {
        let (policy, schema) = (&info.policy, info.policy.schema);
        let (tone, state) = match info.state {
            PolicyState::Enabled => (Tone::Good, "enabled"),
            PolicyState::Disabled => (Tone::Calm, "disabled"),
            PolicyState::Removed => (Tone::Warn, "removed"),
        };
        let of = match policy.layout {
            PolicyLayout::Striped => format!("cells of {}", bytes(u64::from(policy.cell_len))),
            PolicyLayout::Contiguous => "whole blocks".to_string(),
        };
        table
            .row()
            .text(&policy.name)
            .html(&badge(tone, state))
            .text(&schema.codec.to_string())
            .figure(&schema.k.to_string())
            .figure(&schema.m.to_string())
            .figure(&format!("{:.2}", schema.units() as f64 / schema.data_units().max(1) as f64))
            .text(&of);
    }
    table.end("There are none.")
}
