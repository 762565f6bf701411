//! `cairn advise --gears`: DataNodes that can be off while everything can be read, and a day with them.

use crate::output;
use anyhow::Result;
use cairn_advise::gears::{Day, Gears};
use cairn_advise::money::Prices;
use cairn_client::{DataNodeFilter, FileBlock, FileSystem, FileType};
use cairn_stripe::{Policy, PolicyLayout};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Failures that blocks are to outlive with DataNodes off, of which there is a gear each.
const SPARES: [usize; 2] = [0, 1];

/// What was found of where blocks are.
struct Found {
    gears: Gears,
    /// Names of all live DataNodes.
    nodes: Vec<String>,
    /// Contiguous files, of whose groups clients are told nothing.
    contiguous: u64,
}

/// Looks where all blocks below a path are, and tells.
pub async fn run(
    fs: &FileSystem,
    path: &str,
    day: &Day,
    prices: Option<Prices>,
    json: bool,
) -> Result<ExitCode> {
    let found = find(fs, path).await?;
    match json {
        true => crate::say!("{}", as_json(&found, day)),
        false => tell(&found, day, prices.unwrap_or_default()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn find(fs: &FileSystem, path: &str) -> Result<Found> {
    let live = fs.datanodes(DataNodeFilter::Live).await?;
    let numbers: HashMap<String, usize> =
        live.iter().enumerate().map(|(number, node)| (node.addr.uuid.clone(), number)).collect();
    let nodes = live.iter().map(|node| node.addr.to_string()).collect();
    let mut found = Found { gears: Gears::default(), nodes, contiguous: 0 };
    let top = fs.require(path).await?;
    let mut waiting = vec![top];
    while let Some(status) = waiting.pop() {
        match status.file_type {
            FileType::Symlink => {}
            FileType::File => {
                let blocks = match fs.block_locations(&status.path, 0, status.len).await {
                    Ok(blocks) => blocks,
                    // It was deleted meanwhile.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Err(error.into()),
                };
                let contiguous = |policy: &Policy| policy.layout == PolicyLayout::Contiguous;
                found.contiguous += u64::from(blocks.policy.as_ref().is_some_and(contiguous));
                for block in &blocks.blocks {
                    let holders: Vec<usize> = block
                        .locations
                        .iter()
                        .filter_map(|location| numbers.get(&location.addr.uuid).copied())
                        .collect();
                    found.gears.add(&holders, needed(block, blocks.policy.as_ref()))?;
                }
            }
            FileType::Directory => {
                let mut listing = fs.list(&status.path);
                loop {
                    match listing.next().await {
                        Ok(Some(status)) => waiting.push(status),
                        Ok(None) => break,
                        Err(error) if error.kind() == ErrorKind::NotFound => break,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }
    Ok(found)
}

/// How many of its replicas or units it takes to read a block: of a group, as many as it has units of data.
fn needed(block: &FileBlock, policy: Option<&Policy>) -> usize {
    match policy {
        Some(policy) if policy.layout != PolicyLayout::Contiguous => {
            let cells = block.block.len.div_ceil(u64::from(policy.cell_len.max(1)));
            let k = usize::from(policy.schema.k);
            usize::try_from(cells).map_or(k, |cells| cells.clamp(1, k))
        }
        _ => 1,
    }
}

fn tell(found: &Found, day: &Day, prices: Prices) {
    let (gears, nodes) = (&found.gears, found.nodes.len());
    crate::say!("{} blocks and groups on {nodes} DataNodes that live", gears.blocks());
    if gears.unreadable() > 0 {
        crate::complain!("{} cannot be read as it is", gears.unreadable());
    }
    if gears.tight() > 0 {
        crate::say!("{} are on no DataNode that could be off", gears.tight());
    }
    if found.contiguous > 0 {
        crate::say!(
            "{} files are contiguous: which groups their blocks are in clients are not told, so each \
             counts as no more than its copies",
            found.contiguous
        );
    }
    let mut rows = vec![
        ["gear", "off", "node hours", "saved", "kWh a day", "switched"].map(String::from).to_vec(),
    ];
    let day_of = |name: String, off: usize| {
        let simulated = day.run(nodes, off);
        vec![
            name,
            format!("{off} of {nodes}"),
            format!("{:.0} of {:.0}", simulated.node_hours, simulated.of_node_hours),
            format!("{:.1} %", 100.0 * simulated.saved()),
            format!("{:.1}", simulated.node_hours * prices.watts / 1000.0),
            simulated.switched.to_string(),
        ]
    };
    let mut named = Vec::new();
    for spare in SPARES {
        let off = gears.off(nodes, spare);
        let name = match spare {
            0 => "everything readable".to_string(),
            spare => format!("and {spare} more may be lost"),
        };
        rows.push(day_of(name, off.len()));
        named.push((spare, off));
    }
    rows.push(day_of("if blocks were placed for it".into(), gears.by_placement(nodes)));
    output::print(format_args!("{}", output::table(&rows)));
    for (spare, off) in named {
        let names: Vec<&str> = off.iter().map(|&node| found.nodes[node].as_str()).collect();
        let names = if names.is_empty() { "none".to_string() } else { names.join(", ") };
        crate::say!("Off in this order, {spare} to spare: {names}");
    }
}

fn as_json(found: &Found, day: &Day) -> Value {
    let nodes = found.nodes.len();
    let gear = |spare: usize| {
        let off = found.gears.off(nodes, spare);
        let simulated = day.run(nodes, off.len());
        json!({
            "spare": spare,
            "off": off.iter().map(|&node| &found.nodes[node]).collect::<Vec<_>>(),
            "on_through_the_day": simulated.on,
            "node_hours": simulated.node_hours,
            "saved": simulated.saved(),
            "switched": simulated.switched,
        })
    };
    json!({
        "datanodes": nodes,
        "blocks": found.gears.blocks(),
        "tight": found.gears.tight(),
        "unreadable": found.gears.unreadable(),
        "contiguous_files": found.contiguous,
        "gears": SPARES.map(gear),
        "off_by_placement": found.gears.by_placement(nodes),
    })
}
