//! The page that says how the cluster is.

use cairn_net::page::Region;
use cairn_net::page::html::{Facts, Table, Tone, badge, bar, card, chart, count, escape};
use cairn_net::page::text::{about, bytes, number, percent, time};

use super::super::census::Census;
use super::super::history;
use super::super::seen::{Pages, View};
use super::frame::region;
use crate::clock::wall_ms;

pub(super) fn regions(pages: &Pages) -> Vec<Region> {
    let view = pages.now();
    vec![
        region("safe-mode", safe_mode(&view) + &held(pages)),
        region("figures", format!("<div class=\"cards\">{}</div>", cards(pages, &view))),
        region("members", members(pages)),
        region("layouts", layouts(pages.censuses.look().as_deref())),
        region("about", this(pages)),
    ]
}

fn safe_mode(view: &View) -> String {
    match &view.safe_mode {
        None => format!("<p>{} Changes are taken.</p>", badge(Tone::Good, "safe mode is off")),
        Some(tip) => format!(
            "<p>{} {} <a href=\"/startup\">How far the start is</a></p>",
            badge(Tone::Warn, "safe mode is on"),
            escape(tip)
        ),
    }
}

/// Why nothing is deleted.
fn held(pages: &Pages) -> String {
    let ns = &pages.node.ns;
    let mut out = String::new();
    if let Some(restored) = ns.restored() {
        let moment = match restored.entry_ms {
            0 => format!("after entry {}", number(restored.sequence)),
            ms => format!("at {}", time(ms)),
        };
        out.push_str(&format!(
            "<p>{} This is the namespace as it was {moment}. No replica is deleted until \
             <code>cairn admin restored --accept</code>.</p>",
            badge(Tone::Warn, "restored")
        ));
    }
    if let Some(point) = ns.rollback_point() {
        out.push_str(&format!(
            "<p>{} It was prepared at {}. No replica is deleted until \
             <code>cairn admin rolling-upgrade finalize</code>.</p>",
            badge(Tone::Warn, "rolling upgrade"),
            time(point.start_ms)
        ));
    }
    out
}

fn cards(pages: &Pages, view: &View) -> String {
    let (stats, usage) = (&view.stats, &view.stats.usage);
    let used = usage.dfs_used as f64 * 100.0 / usage.capacity.max(1) as f64;
    let label = format!("{} of the capacity is used", percent(usage.dfs_used, usage.capacity));
    let capacity = Facts::default()
        .text("Capacity", &bytes(usage.capacity))
        .text("Used by blocks", &bytes(usage.dfs_used))
        .text("Used otherwise", &bytes(usage.non_dfs_used))
        .text("Free for blocks", &bytes(usage.remaining));
    let capacity = card(
        "Space",
        &format!("{} used {}", bytes(usage.dfs_used), bar(used, &label)),
        &capacity.end(),
    );
    let leaving = stats.decommissioning_nodes + stats.entering_maintenance_nodes;
    let nodes = Facts::default()
        .html("Dead", &count(stats.dead_nodes as u64, Tone::Bad))
        .html("Silent for a while", &count(stats.stale_nodes as u64, Tone::Warn))
        .html("Being taken out", &count(leaving as u64, Tone::Calm))
        .html("Failed volumes", &count(stats.failed_volumes, Tone::Bad))
        .text("Transfers under way", &number(stats.xceivers));
    let live = format!("{} live", number(stats.live_nodes as u64));
    let nodes = card("<a href=\"/datanodes\">DataNodes</a>", &live, &nodes.end());
    let lost = stats.replicated.missing + stats.groups.missing;
    let low = stats.replicated.low_redundancy + stats.groups.low_redundancy;
    let health = Facts::default()
        .html("Lost", &count(lost, Tone::Bad))
        .html("Lack something", &count(low, Tone::Warn))
        .html(
            "With bad replicas",
            &count(stats.replicated.corrupt + stats.groups.corrupt, Tone::Warn),
        )
        .html("Disagree", &count(stats.disagreeing, Tone::Bad))
        .text("Being mended", &number(stats.pending_reconstruction));
    let state = match lost {
        _ if view.is_whole() => badge(Tone::Good, "all whole"),
        0 if view.safe_mode.is_some() => badge(Tone::Calm, "not known yet"),
        0 => badge(Tone::Warn, "being mended"),
        _ => badge(Tone::Bad, "something is lost"),
    };
    let health = card("<a href=\"/coding\">Blocks and groups</a>", &state, &health.end());
    let names = Facts::default()
        .text("Files and directories", &number(view.totals.inodes))
        .text("Blocks and groups", &number(view.totals.blocks))
        .text("Last change", &format!("no. {}", number(pages.node.ns.last_sequence())));
    let names = card("Names", &number(view.totals.inodes), &names.end());
    let calls = pages.history.rate_of(|sample| sample.calls);
    let now = calls.last().copied().unwrap_or_default();
    let minutes = calls.len() as u64 * history::PERIOD.as_secs() / 60;
    let drawn = chart(&calls, &format!("Calls in a second over the last {minutes} minutes"));
    let load = card("Calls", &format!("{now:.0} a second"), &drawn);
    capacity + &nodes + &health + &names + &load
}

fn layouts(census: Option<&Census>) -> String {
    let Some(census) = census else {
        return "<h2>How data is kept</h2><p>It is being counted.</p>".to_string();
    };
    let columns =
        ["Layout", "#Blocks and groups", "#Data", "#Stored", "#For each byte", "#Share of data"];
    let mut table = Table::new("How data is kept", &columns);
    let data = census.data_len();
    for (name, share) in &census.shares {
        let ratio = share.stored_len as f64 / share.data_len.max(1) as f64;
        table
            .row()
            .text(name)
            .figure(&number(share.blocks))
            .figure(&bytes(share.data_len))
            .figure(&bytes(share.stored_len))
            .figure(&format!("{ratio:.2}"))
            .figure(&percent(share.data_len, data));
    }
    let mut out = table.end("There is no data yet.");
    let saved = census.saved();
    if saved > 0 && data > 0 {
        let saved = u64::try_from(saved).unwrap_or(u64::MAX);
        out.push_str(&format!(
            "<p>Three copies of everything would take {} more than this does when all is whole.</p>",
            bytes(saved)
        ));
    }
    out.push_str(&format!("<p class=\"faint\">Counted at {}.</p>", time(census.at_ms)));
    out
}

/// The members of the quorum that it leads.
fn members(pages: &Pages) -> String {
    let Some(lead) = &pages.node.lead else { return String::new() };
    let (status, rows) = lead.members();
    let caption = format!("Members of the quorum, term {}", status.term);
    let columns = ["Member", "Role", "State", "#Entry", "#Lag", "Address"];
    let mut table = Table::new(&caption, &columns);
    for row in rows {
        let lag = row.lag(&status);
        let role = if row.leads { "leader" } else { row.part.word() };
        let state = match (row.is_there, row.is_ready) {
            (true, true) => badge(Tone::Good, "ready"),
            (true, false) => badge(Tone::Warn, "not ready"),
            (false, _) => badge(Tone::Bad, "silent"),
        };
        let figure = |figure: Option<u64>| figure.map_or(String::new(), number);
        let address = row.place.map_or(String::new(), |place| place.rpc);
        table.row().text(&row.name).text(role).html(&state);
        table.figure(&figure(row.last)).figure(&figure(lag)).text(&address);
    }
    table.end("")
}

fn this(pages: &Pages) -> String {
    let node = &pages.node;
    let identity = node.ns.identity();
    let age = about(wall_ms().saturating_sub(node.started_ms) / 1000);
    let jump_ms = node.ns.clock().jump_ms();
    let clock = jump_ms.map(|jump_ms| {
        let direction = if jump_ms > 0 { "ahead" } else { "back" };
        let time = about(jump_ms.unsigned_abs() / 1000);
        badge(Tone::Warn, &format!("has jumped {time} {direction}; times of files follow slowly"))
    });
    let differ = node.lead.as_ref().map(|lead| lead.configured_otherwise()).unwrap_or_default();
    let others: String = differ.iter().map(|name| format!(" {name}")).collect();
    let changed = node.ns.changed_settings();
    let keys: String = changed.iter().map(|it| format!(" {}", it.key)).collect();
    let settings = match (differ.is_empty(), changed.is_empty()) {
        (false, _) => badge(Tone::Warn, &format!("members are configured otherwise:{others}")),
        (true, false) => badge(Tone::Calm, &format!("changed at the start:{keys}")),
        (true, true) => badge(Tone::Good, "as before"),
    };
    let facts = Facts::default()
        .text("Version", env!("CARGO_PKG_VERSION"))
        .html("Settings that commands obey", &settings)
        .html("Clock", &clock.unwrap_or_else(|| badge(Tone::Good, "runs steadily")))
        .text("Started", &format!("{}, {age} ago", time(node.started_ms)))
        .text("Cluster", &identity.cluster_id)
        .text("Block pool", &identity.block_pool_id)
        .text("Folder", &node.config.name_dir.display().to_string());
    let mut out = format!("<h2>This NameNode</h2>{}<p>For programs:", facts.end());
    for path in [
        "/jmx",
        "/prom",
        "/conf",
        "/health",
        "/leaving",
        "/operations",
        "/stacks",
        "/startupProgress",
    ] {
        out.push_str(&format!(" <a href=\"{path}\">{path}</a>"));
    }
    out.push_str("</p>");
    out
}
