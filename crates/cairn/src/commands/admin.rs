//! `cairn admin`: what operators do with a cluster. Each sub-command has its flags and its deed in a file of `admin/`.

mod datanodes;
mod leave;
pub mod members;
mod namenode;
mod operator;
mod quotas;
mod reconfigure;
mod upgrade;

use super::report;
use crate::{Settings, config};
use anyhow::Result;
use cairn_client::FileSystem;
use clap::Subcommand;
use operator::Operator;
use std::process::ExitCode;

const EXIT: &str = "\
Each sub-command may be written as hdfs dfsadmin has it, too: cairn admin -safemode enter, cairn admin -setQuota 20 /x.

Exit status: 0 if it was done, 1 if it was not, 2 for wrong words, 130 and 143 if interrupted.";

/// Flags of `cairn admin`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT)]
pub struct Args {
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Debug, Subcommand)]
enum AdminCommand {
    /// Let a directory have snapshots
    #[command(alias = "allowSnapshot")]
    AllowSnapshot(namenode::Paths),
    /// Lift the limit of names of directories
    #[command(alias = "clrQuota")]
    ClearQuota(quotas::ClearQuota),
    /// Lift the limit of bytes of directories
    #[command(alias = "clrSpaceQuota")]
    ClearSpaceQuota(quotas::ClearSpaceQuota),
    /// Show what a DataNode tells of itself, and its volumes
    #[command(alias = "getDatanodeInfo", alias = "getVolumeReport")]
    Datanode(datanodes::Show),
    /// Have DataNodes give all they hold to others, and wait until they may be switched off
    Decommission(leave::Decommission),
    /// Let a directory have no more snapshots
    #[command(alias = "disallowSnapshot")]
    DisallowSnapshot(namenode::Paths),
    /// End all writes to a DataNode; writers go on with others
    #[command(alias = "evictWriters")]
    EvictWriters(datanodes::Address),
    /// Give up what is kept to go back from an upgrade
    #[command(alias = "finalizeUpgrade")]
    FinalizeUpgrade,
    /// Show how many bytes a second a DataNode may move for a balancer
    #[command(alias = "getBalancerBandwidth")]
    GetBalancerBandwidth(datanodes::Address),
    /// Have DataNodes be away for a while, and wait until they may be switched off
    Maintenance(leave::Maintenance),
    /// Show the NameNodes of a quorum, shut one out, or let it join again
    Members(members::Members),
    /// Have the NameNode write what it knows of blocks and DataNodes into a file of its folder
    Metasave(namenode::Metasave),
    /// List files that are open for writing
    #[command(alias = "listOpenFiles")]
    OpenFiles(namenode::OpenFiles),
    /// Make the trash of snapshottable directories
    #[command(alias = "provisionSnapshotTrash")]
    ProvisionSnapshotTrash(namenode::ProvisionTrash),
    /// Take DataNodes back into service that leave, have left or are away
    Recommission(leave::Recommission),
    /// Have a server read its configuration, and change what may change while it runs
    Reconfig(reconfigure::Reconfig),
    /// Have the NameNode read how calls wait
    #[command(alias = "refreshCallQueue")]
    RefreshCallQueue,
    /// Have the NameNode read its lists of DataNodes and racks
    #[command(alias = "refreshNodes")]
    RefreshNodes,
    /// Have the NameNode read who may use which protocol
    #[command(alias = "refreshServiceAcl")]
    RefreshServiceAcl,
    /// Have the NameNode read who may act for whom
    #[command(alias = "refreshSuperUserGroupsConfiguration")]
    RefreshSuperUserGroups,
    /// Have the NameNode ask which groups users are in
    #[command(alias = "refreshUserToGroupsMappings")]
    RefreshUserToGroupsMappings,
    /// Show the state and the space of the cluster
    Report(report::Args),
    /// Tell to which moment the namespace was restored from a backup, or accept that
    Restored(upgrade::Restored),
    /// Say what to do with failed folders of the NameNode
    #[command(alias = "restoreFailedStorage")]
    RestoreFailedStorage(namenode::RestoreFailedStorage),
    /// Begin a new segment of the log
    #[command(alias = "rollEdits")]
    RollEdits,
    /// Begin or end a rolling upgrade, or tell of it
    #[command(alias = "rollingUpgrade")]
    RollingUpgrade(upgrade::Rolling),
    /// Enter or leave safe mode, tell of it, or wait for its end
    Safemode(namenode::SafeMode),
    /// Write the log to the store; the NameNode must be in safe mode
    #[command(alias = "saveNamespace")]
    SaveNamespace(namenode::SaveNamespace),
    /// Tell all DataNodes how many bytes a second they may move for a balancer
    #[command(alias = "setBalancerBandwidth")]
    SetBalancerBandwidth(namenode::SetBandwidth),
    /// Limit how many names directories may hold
    #[command(alias = "setQuota")]
    SetQuota(quotas::SetQuota),
    /// Limit how many bytes on disk directories may hold
    #[command(alias = "setSpaceQuota")]
    SetSpaceQuota(quotas::SetSpaceQuota),
    /// End a DataNode
    #[command(alias = "shutdownDatanode")]
    ShutdownDatanode(datanodes::Shutdown),
    /// Show the racks and the DataNodes in them
    #[command(alias = "printTopology")]
    Topology,
    /// Have a DataNode tell the NameNode what it holds
    #[command(alias = "triggerBlockReport")]
    TriggerBlockReport(datanodes::TriggerReport),
    /// Say whether an upgrade waits to be finalized, or finalize it
    Upgrade(upgrade::Upgrade),
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    use AdminCommand as Do;
    use cairn_client::Refresh;
    // Connects at the first call: what asks a DataNode by its address needs no NameNode.
    let fs = FileSystem::new(config::client::read(&settings.configuration()?)?)?;
    let operator = Operator { fs: &fs, json: settings.json };
    match args.command {
        Do::AllowSnapshot(args) => args.allow_snapshot(&operator).await,
        Do::ClearQuota(args) => args.run(&operator).await,
        Do::ClearSpaceQuota(args) => args.run(&operator).await,
        Do::Datanode(args) => args.run(&operator).await,
        Do::Decommission(args) => args.run(&operator).await,
        Do::DisallowSnapshot(args) => args.disallow_snapshot(&operator).await,
        Do::EvictWriters(args) => args.evict_writers(&operator).await,
        Do::FinalizeUpgrade => upgrade::finalize(&operator).await,
        Do::GetBalancerBandwidth(args) => args.bandwidth(&operator).await,
        Do::Maintenance(args) => args.run(&operator).await,
        Do::Members(args) => args.run(&operator).await,
        Do::Metasave(args) => args.run(&operator).await,
        Do::OpenFiles(args) => args.run(&operator).await,
        Do::ProvisionSnapshotTrash(args) => args.run(&operator).await,
        Do::Recommission(args) => args.run(&operator).await,
        Do::Reconfig(args) => args.run(&operator).await,
        Do::RefreshCallQueue => operator.refresh(Refresh::CallQueue).await,
        Do::RefreshNodes => namenode::refresh_nodes(&operator).await,
        Do::RefreshServiceAcl => operator.refresh(Refresh::ServiceAcl).await,
        Do::RefreshSuperUserGroups => operator.refresh(Refresh::SuperUserGroups).await,
        Do::RefreshUserToGroupsMappings => operator.refresh(Refresh::UserToGroupsMappings).await,
        Do::Report(args) => report::show(&fs, settings.json, args).await,
        Do::Restored(args) => args.run(&operator).await,
        Do::RestoreFailedStorage(args) => args.run(&operator).await,
        Do::RollEdits => namenode::roll_edits(&operator).await,
        Do::RollingUpgrade(args) => args.run(&operator).await,
        Do::Safemode(args) => args.run(&operator).await,
        Do::SaveNamespace(args) => args.run(&operator).await,
        Do::SetBalancerBandwidth(args) => args.run(&operator).await,
        Do::SetQuota(args) => args.run(&operator).await,
        Do::SetSpaceQuota(args) => args.run(&operator).await,
        Do::ShutdownDatanode(args) => args.run(&operator).await,
        Do::Topology => namenode::topology(&operator).await,
        Do::TriggerBlockReport(args) => args.run(&operator).await,
        Do::Upgrade(args) => args.run(&operator).await,
    }
}
