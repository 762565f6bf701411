//! What operators change: safe mode, deletions during an upgrade, settings of the cluster, which DataNodes may serve.
//!
//! What they order of the whole file system is in the log, and holds until they order something else; in a log that an
//! earlier version has begun, and may go on with, it is not ([`NameNode::logs_orders`]).

use cairn_master::reports;
use cairn_namespace::ops::orders::{OrderNodes, SetBalancerBandwidth, SetSafeMode};
use cairn_namespace::query;
use cairn_process::disk_work::step_aside;
use cairn_redundancy::{AdminIntent, Config, NodeAddress};

use crate::hosts::{Hosts, own};
use crate::node::NameNode;
use crate::refusal::Refusal;

impl NameNode {
    /// Whether what operators order goes to the log.
    fn logs_orders(&self) -> bool {
        self.ns.is_finalized()
    }

    /// Has the cluster do what was ordered before a start.
    pub(crate) fn heed_orders(&self) -> cairn_namespace::Result<()> {
        let orders = self.ns.read(|store| query::orders(store))?;
        let mut cluster = self.cluster();
        cluster.set_balancer_bandwidth(orders.balancer_bandwidth);
        if orders.safe_mode {
            cluster.enter_safe_mode();
            tracing::warn!(
                "safe mode was turned on before this start: it stays until `dfsadmin -safemode leave`"
            );
        }
        Ok(())
    }

    /// Has it in the log whether safe mode is on by an operator's order. Says whether that has changed.
    pub(crate) async fn log_safe_mode(&self, on: bool) -> Result<bool, Refusal> {
        let is_change = self.ns.read(|store| query::orders(store))?.safe_mode != on;
        if is_change && self.logs_orders() {
            self.submit_own(SetSafeMode { on }).await?;
        }
        Ok(is_change)
    }

    /// Begins safe mode on request. Says whether it is on.
    pub(crate) async fn enter_safe_mode(&self) -> Result<bool, Refusal> {
        let _one_at_a_time = self.ordering.lock().await;
        self.log_safe_mode(true).await?;
        Ok(self.change_safe_mode(|cluster| {
            cluster.enter_safe_mode();
            cluster.safe_mode().is_on()
        }))
    }

    /// Ends safe mode, by force also if replicas have stamps of the future. Says whether it is on still.
    pub(crate) async fn leave_safe_mode(&self, force: bool) -> Result<bool, Refusal> {
        let _one_at_a_time = self.ordering.lock().await;
        let leave = |force| {
            self.change_safe_mode(|cluster| {
                cluster.leave_safe_mode(force);
                cluster.safe_mode().is_on()
            })
        };
        let is_on = leave(force);
        if !is_on && let Err(refusal) = self.log_safe_mode(false).await {
            self.cluster().enter_safe_mode();
            return Err(refusal);
        }
        Ok(is_on)
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

    /// Tells all DataNodes how many bytes a second they may move for the balancer, now and when they register.
    pub(crate) async fn set_balancer_bandwidth(
        &self,
        bytes_per_second: u64,
    ) -> Result<(), Refusal> {
        let _one_at_a_time = self.ordering.lock().await;
        if self.logs_orders() {
            self.submit_own(SetBalancerBandwidth { bytes_per_second }).await?;
        }
        self.cluster().set_balancer_bandwidth(bytes_per_second);
        Ok(())
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
        let _one_at_a_time = self.ordering.lock().await;
        let known: Vec<_> = self.cluster().nodes().map(|node| node.address.clone()).collect();
        let (config, names, logs) = (self.config.clone(), names.to_vec(), self.logs_orders());
        let orders = self.ns.read(|store| query::orders(store))?.nodes;
        let set = move || {
            let hosts = Hosts::read(&config, &orders).map_err(own::StateError::from)?;
            let change = own::change(&hosts, &known, &names, intent)?;
            if !logs {
                own::write(&config.name_dir, &change)?;
            }
            Ok::<_, own::StateError>(change)
        };
        let change = tokio::task::spawn_blocking(set).await;
        let change = change.map_err(|_| Refusal::io("setDatanodeState was interrupted"))?;
        let change = change.map_err(|error| Refusal::io(error.to_string()))?;
        if logs {
            self.submit_own(OrderNodes { withdrawn: change.withdrawn, ordered: change.ordered })
                .await?;
        }
        self.refresh_nodes().await?;
        Ok(change.meant)
    }

    /// Takes into the log what an earlier version has kept of DataNodes in a file of its own, if that may be.
    pub(crate) async fn log_own_hosts(&self) -> Result<(), Refusal> {
        if !self.logs_orders() {
            return Ok(());
        }
        let _one_at_a_time = self.ordering.lock().await;
        let name_dir = self.config.name_dir.clone();
        let read = tokio::task::spawn_blocking(move || own::read_orders(&name_dir)).await;
        let read =
            read.map_err(|_| Refusal::io("reading what is wanted of DataNodes was interrupted"))?;
        let ordered = read.map_err(|error| Refusal::io(error.to_string()))?;
        if ordered.is_empty() {
            return Ok(());
        }
        self.submit_own(OrderNodes { withdrawn: Vec::new(), ordered }).await?;
        let name_dir = self.config.name_dir.clone();
        let put_aside = tokio::task::spawn_blocking(move || own::put_aside(&name_dir)).await;
        let put_aside = put_aside.map_err(|_| Refusal::io("it was interrupted"))?;
        put_aside.map_err(|error| Refusal::io(own::StateError::from(error).to_string()))
    }

    /// Reads racks and lists of DataNodes again and acts on them: each node is told what is wanted of it,
    /// and nodes that may not serve any more are dropped.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#refreshDatanodes`.
    pub async fn refresh_nodes(&self) -> Result<(), Refusal> {
        let config = self.config.clone();
        let orders = self.ns.read(|store| query::orders(store))?.nodes;
        let read = tokio::task::spawn_blocking(move || Hosts::read(&config, &orders)).await;
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
