//! What operators change: safe mode, deletions during an upgrade, settings of the cluster, which DataNodes may serve.

use cairn_master::reports;
use cairn_net::disk_work::step_aside;
use cairn_redundancy::{AdminIntent, Config, NodeAddress};

use crate::hosts::{Hosts, own};
use crate::node::NameNode;
use crate::refusal::Refusal;

impl NameNode {
    /// Begins safe mode on request. Says whether it is on.
    pub(crate) fn enter_safe_mode(&self) -> bool {
        self.change_safe_mode(|cluster| {
            cluster.enter_safe_mode();
            cluster.safe_mode().is_on()
        })
    }

    /// Ends safe mode, by force also if replicas have stamps of the future. Says whether it is on still.
    pub(crate) fn leave_safe_mode(&self, force: bool) -> bool {
        self.change_safe_mode(|cluster| {
            cluster.leave_safe_mode(force);
            cluster.safe_mode().is_on()
        })
    }

    /// Ends safe mode with deletions held, for a rolling upgrade.
    pub(crate) fn leave_safe_mode_holding_deletions(&self) {
        self.change_safe_mode(|cluster| {
            cluster.hold_deletions(true);
            cluster.leave_safe_mode(false);
        });
    }

    /// Has replicas deleted again, unless a rolling upgrade or a restored namespace holds that back.
    pub(crate) fn release_deletions(&self) {
        let is_held = self.ns.rollback_point().is_some() || self.ns.restored().is_some();
        self.cluster().hold_deletions(is_held);
    }

    /// Tells all DataNodes how many bytes a second they may move for the balancer.
    pub(crate) fn set_balancer_bandwidth(&self, bytes_per_second: u64) {
        self.cluster().set_balancer_bandwidth(bytes_per_second);
    }

    /// Changes settings of the cluster, unless the change is refused.
    pub(crate) fn change_cluster_config<E>(
        &self,
        change: impl FnOnce(&mut Config) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cluster = self.cluster();
        let mut config = cluster.config().clone();
        change(&mut config)?;
        cluster.set_config(config);
        Ok(())
    }

    /// Keeps what is wanted of the DataNodes that `names` mean (`host` or `host:port`), over restarts, and acts on it.
    /// Returns the DataNodes that are meant.
    pub async fn set_intent(
        &self,
        names: &[String],
        intent: AdminIntent,
    ) -> Result<Vec<NodeAddress>, Refusal> {
        let _one_at_a_time = self.changing_hosts.lock().await;
        let known: Vec<_> = self.cluster().nodes().map(|node| node.address.clone()).collect();
        let (config, names) = (self.config.clone(), names.to_vec());
        let set = move || {
            let hosts = Hosts::read(&config).map_err(own::StateError::from)?;
            own::set(&config.name_dir, &hosts, &known, &names, intent)
        };
        let meant = tokio::task::spawn_blocking(set).await;
        let meant = meant.map_err(|_| Refusal::io("setDatanodeState was interrupted"))?;
        let meant = meant.map_err(|error| Refusal::io(error.to_string()))?;
        self.refresh_nodes().await?;
        Ok(meant)
    }

    /// Reads racks and lists of DataNodes again and acts on them: each node is told what is wanted of it,
    /// and nodes that may not serve any more are dropped.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#refreshDatanodes`.
    pub async fn refresh_nodes(&self) -> Result<(), Refusal> {
        let config = self.config.clone();
        let read = tokio::task::spawn_blocking(move || Hosts::read(&config)).await;
        let hosts = read.map_err(|_| Refusal::io("refreshNodes was interrupted"))?;
        self.topology.refresh(hosts.map_err(|error| Refusal::io(error.to_string()))?);
        let (hosts, now) = (self.topology.hosts(), self.now());
        let known: Vec<_> = self.cluster().nodes().map(|n| (n.handle, n.address.clone())).collect();
        // One after the other: a change has blocks looked at, and others wait for the lock.
        for (handle, address) in known {
            self.with_cluster(|cluster, lookup| {
                let listed = hosts.is_included(&address).then(|| hosts.listed(&address));
                reports::list_again(cluster, lookup, handle, listed, now);
            });
            step_aside().await;
        }
        Ok(())
    }
}
