//! The page of DataNodes and disks that are slow.

use cairn_net::page::Region;
use cairn_net::page::html::Table;

use super::super::seen::Pages;
use super::frame::region;

pub(super) fn regions(pages: &Pages) -> Vec<Region> {
    let (nodes, disks) = look(pages);
    vec![region("nodes", nodes), region("disks", disks)]
}

fn look(pages: &Pages) -> (String, String) {
    let (now, cluster) = (pages.node.now(), pages.node.cluster());
    let config = &cluster.config().slow;
    let columns = [
        "DataNode",
        "#Told by",
        "#Its mean",
        "#Median of all",
        "#Limit",
        "New blocks go elsewhere",
    ];
    let mut nodes = Table::new("DataNodes that others call slow", &columns);
    for slow in cluster.slow_nodes(config.nodes_shown, now) {
        let worst = slow.reports.iter().map(|(_, outlier)| *outlier);
        let worst = worst.max_by(|one, other| one.latency_ms.total_cmp(&other.latency_ms));
        let worst = worst.unwrap_or_default();
        let ms = |ms: f64| format!("{ms:.1} ms");
        nodes
            .row()
            .text(&cluster.node(slow.node).name())
            .figure(&slow.reports.len().to_string())
            .figure(&ms(worst.latency_ms))
            .figure(&ms(worst.median_ms))
            .figure(&ms(worst.limit_ms))
            .text(if cluster.is_slow(slow.node) { "yes" } else { "no" });
    }
    let columns = ["DataNode", "Folder", "#Names", "#Reads", "#Writes"];
    let mut disks = Table::new("Disks that their DataNodes call slow", &columns);
    for (node, slow) in cluster.slow_disks(config.disks_shown, now) {
        let ms = |ms: Option<f64>| ms.map_or("–".to_string(), |ms| format!("{ms:.1} ms"));
        disks
            .row()
            .text(&cluster.node(node).name())
            .text(&slow.path)
            .figure(&ms(slow.metadata_ms))
            .figure(&ms(slow.read_ms))
            .figure(&ms(slow.write_ms));
    }
    let switched_off = |is_on: bool, key: &str| match is_on {
        true => "None.".to_string(),
        false => format!("They are not measured: {key} is off here."),
    };
    let no_nodes = switched_off(config.takes_peers, "dfs.datanode.peer.stats.enabled");
    let no_disks =
        switched_off(config.takes_disks, "dfs.datanode.fileio.profiling.sampling.percentage");
    (nodes.end(&no_nodes), disks.end(&no_disks))
}
