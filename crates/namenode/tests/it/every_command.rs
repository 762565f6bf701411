//! A kill at any record of the log, after commands of every kind.
//!
//! The store in memory that applies the same entries says what the state must be: all tables, so names, attributes,
//! lists, quotas, snapshots, caching, policies, leases and the outcomes of calls.

use cairn_namenode::journal::{Durability, Namesystem, NamesystemOptions};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::container::PackedBlock;
use cairn_namespace::encryption::FileKey;
use cairn_namespace::group::{ChecksumShape, GroupPauses, ParityRecord};
use cairn_namespace::ops::abandon_block::{AbandonBlock, WithdrawBlock};
use cairn_namespace::ops::acl::{AclChange, ChangeAcl};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::adopt::{Adopt, AdoptedMember};
use cairn_namespace::ops::adopt_container::AdoptContainer;
use cairn_namespace::ops::adopt_packed::{AdoptPacked, AdoptedBlock};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::cache_directive::{
    AddCacheDirective, CacheDirectiveSpec, ModifyCacheDirective, RemoveCacheDirective,
};
use cairn_namespace::ops::cache_pool::{
    AddCachePool, CachePoolSpec, ModifyCachePool, RemoveCachePool,
};
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::convert::Convert;
use cairn_namespace::ops::create::{Create, CreateEncrypted};
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::ec::{
    AddEcPolicies, DisableEcPolicy, EnableEcPolicy, PolicySpec, RemoveEcPolicy, SetEcPolicy,
    UnsetEcPolicy,
};
use cairn_namespace::ops::encryption::{
    AdvanceReencryption, CreateEncryptionZone, ReencryptEncryptionZone, RenewedKey,
};
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::group::{
    Abandon, BeginDissolve, BeginEncode, Dissolve, Form, MemberSum, NewMember, PauseGroups,
};
use cairn_namespace::ops::holds::{PrepareUpgrade, Release};
use cairn_namespace::ops::lease::{
    LastBlocks, RecoverLease, ReleaseLease, RenewAllLeases, RenewLease,
};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::orders::{OrderNodes, SetBalancerBandwidth, SetSafeMode};
use cairn_namespace::ops::pack::{AbandonPack, BeginPack, EndPack, Pack, SealPack};
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::repack::Repack;
use cairn_namespace::ops::satisfy_storage_policy::SatisfyStoragePolicy;
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota, SetTypeQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::set_times::{SetTimes, TouchAccessTime};
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CollectSnapshot, CreateSnapshot, DeleteSnapshot, DisallowSnapshot,
    RenameSnapshot,
};
use cairn_namespace::ops::swap_blocks::SwapBlocks;
use cairn_namespace::ops::token::{
    AddTokenKey, CancelToken, IssueToken, RemoveEndedTokens, RenewToken,
};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs, ReplaceCrc};
use cairn_namespace::ops::unpack::{BeginUnpack, Unpack};
use cairn_namespace::ops::watch_events::WatchEvents;
use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::orders::{NodeIntent, NodeName, NodeOrder};
use cairn_namespace::snapshot::SnapshotSettings;
use cairn_namespace::store::StoreTxn;
use cairn_namespace::store::conformance::{Records, dump};
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::token::{SECRET_LEN, Secret};
use cairn_namespace::{
    Block, BlockRef, CallId, Caller, Command, Conversion, Effect, Entry, InodeId, Outcome,
    Settings, apply, block, inode, query,
};
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::journal::{copy, end_of, open_with, options, segments};

const READY: LastBlocks = LastBlocks {
    penultimate_min_replicated: true,
    last_min_replicated: true,
    last_has_locations: true,
    seen: None,
};

/// More inodes than one command removes.
const MANY: usize = 1005;

fn settings() -> NamesystemOptions {
    NamesystemOptions {
        settings: Settings {
            replication_max: 9,
            block_size_min: 0,
            snapshots_deleted_in_order: true,
            packs: true,
            ..Settings::default()
        },
        snapshots: SnapshotSettings { diff_page: 7, ..SnapshotSettings::default() },
        ..options()
    }
}

struct World {
    namesystem: Arc<Namesystem>,
    mirror: MemoryStore,
    /// The recovery that was ordered last, and its stamp.
    ordered: Option<(BlockId, GenerationStamp)>,
    log: std::path::PathBuf,
    now_ms: u64,
    random: u64,
    calls: i32,
    /// Names of the commands that are in the log.
    logged: BTreeSet<&'static str>,
    /// The end of each record of the log, and the state with it.
    states: Vec<(u64, Records)>,
    /// Calls that are carried out once, with their outcomes.
    once: Vec<(Entry, Outcome)>,
}

impl World {
    fn new(dir: &Path, seed: u64) -> World {
        // What is there before; the log begins behind it with the new settings.
        let quick = NamesystemOptions {
            durability: Durability::PageCache,
            checkpoint_entries: 500,
            ..options()
        };
        let namesystem = open_with(dir, quick);
        let mkdirs = |path: String| {
            let command = Mkdirs { path, mode: 0o755.into(), create_parent: true }.into();
            let entry = Entry { now_ms: 1, elapsed_ms: 1, caller: root(), call: None, command };
            namesystem.submit_blocking(entry).unwrap();
        };
        (0..MANY).for_each(|number| mkdirs(format!("/many/{number}")));
        drop(namesystem);
        let namesystem = open_with(dir, settings());
        let records = namesystem.read(|now| dump(now));
        let mut mirror = MemoryStore::new();
        for (table, key, value) in &records {
            mirror.put(*table, key, value).unwrap();
        }
        let log = segments(dir).pop().unwrap();
        World {
            namesystem,
            mirror,
            states: vec![(end_of(&log), records)],
            log,
            now_ms: 1_000_000,
            random: seed,
            calls: 0,
            // Written at the start, for the settings are others than before.
            logged: BTreeSet::from(["Configure", "ConfigureSnapshots"]),
            ordered: None,
            once: Vec::new(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    fn submit(&mut self, command: impl Into<Command>) -> Outcome {
        let command = command.into();
        self.try_submit(command.clone()).unwrap_or_else(|why| panic!("{command:?}: {why}"))
    }

    fn try_submit(&mut self, command: Command) -> Result<Outcome, String> {
        self.now_ms += 1 + self.below(50);
        self.calls += 1;
        let call = Some(CallId { client_id: [7; 16], call_id: self.calls });
        let name = command.name();
        let entry =
            Entry { now_ms: self.now_ms, elapsed_ms: self.now_ms, caller: root(), call, command };
        let outcome = self.namesystem.submit_blocking(entry.clone());
        let mirrored = apply(&mut self.mirror, &entry).map(|(answer, effects)| {
            self.ordered = effects.iter().find_map(ordered).or(self.ordered);
            answer
        });
        assert_eq!(
            outcome.as_ref().map_err(ToString::to_string),
            mirrored.as_ref().map_err(ToString::to_string),
        );
        let outcome = outcome.map_err(|error| error.to_string())?;
        let len = end_of(&self.log);
        if self.states.last().is_some_and(|(end, _)| *end < len) {
            self.logged.insert(name);
            self.states.push((len, dump(&self.mirror)));
        }
        if entry.command.is_at_most_once() {
            self.once.push((entry, outcome.clone()));
        }
        Ok(outcome)
    }

    /// Some command on names that nothing else uses; it may be refused.
    fn noise(&mut self) {
        let mut path = || format!("/n/{}/{}", self.below(2), self.below(3));
        let (path, other) = (path(), path());
        let command: Command = match self.below(9) {
            0 | 1 => Mkdirs { path, mode: 0o755.into(), create_parent: true }.into(),
            2 => Rename { src: path, dst: other }.into(),
            3 => Delete { path, recursive: true }.into(),
            4 => SetPermission { path, mode: self.below(0o777) as u16 }.into(),
            5 => SetXAttr {
                path,
                name: note(),
                value: vec![self.below(256) as u8],
                create: true,
                replace: true,
            }
            .into(),
            6 => CreateSnapshot { path: "/n".into(), name: format!("s{}", self.below(4)) }.into(),
            7 => CollectSnapshot {}.into(),
            _ => DeleteSnapshot { path: "/n".into(), name: format!("s{}", self.below(4)) }.into(),
        };
        let _ = self.try_submit(command);
    }

    fn mkdirs(&mut self, path: &str) {
        self.submit(Mkdirs { path: path.into(), mode: 0o755.into(), create_parent: true });
    }

    fn creation(&self, path: &str) -> Create {
        Create {
            path: path.into(),
            mode: 0o644.into(),
            holder: "client".into(),
            client_machine: "host".into(),
            create: true,
            overwrite: true,
            should_replicate: false,
            create_parent: true,
            replication: 3,
            block_size: 1 << 20,
            ec_policy: None,
            storage_policy: None,
        }
    }

    fn create(&mut self, path: &str) -> InodeId {
        let creation = self.creation(path);
        let outcome = self.submit(creation);
        match outcome {
            Outcome::Created { status, .. } => status.inode.id,
            other => panic!("{other:?}"),
        }
    }

    fn add_block(&mut self, path: &str, previous: Option<BlockRef>, is_ready: bool) -> Block {
        let outcome = self.submit(AddBlock {
            path: path.into(),
            file: None,
            holder: "client".into(),
            previous,
            previous_crcs: vec![Some(5)],
            previous_min_replicated: is_ready,
        });
        match outcome {
            Outcome::BlockAdded { block, .. } => block,
            other => panic!("{other:?}"),
        }
    }

    fn complete(&mut self, path: &str, last: Option<BlockRef>) {
        self.submit(Complete {
            path: path.into(),
            file: None,
            holder: "client".into(),
            last,
            last_crcs: Vec::new(),
            min_replicated: true,
        });
    }

    fn write(&mut self, path: &str, len: u64) -> BlockRef {
        self.create(path);
        let block = self.add_block(path, None, true);
        let last = BlockRef { len, ..block.reference() };
        self.complete(path, Some(last));
        last
    }

    /// Ends the recovery that was ordered last.
    fn synchronize(&mut self, outcome: Outcome, new_len: u64) {
        assert_eq!(outcome, Outcome::Recovery { closed: false });
        let (id, new_gs) = self.ordered.take().expect("a recovery was ordered");
        let block = block::get(&self.mirror, id).unwrap().expect("it is there");
        let id = block.copy_source().unwrap_or(id);
        self.submit(CommitBlockSynchronization {
            block: BlockRef { id, ..block.reference() },
            new_gs,
            new_len,
            close_file: true,
            delete_block: DropBlock::No,
        });
    }
}

fn ordered(effect: &Effect) -> Option<(BlockId, GenerationStamp)> {
    match effect {
        Effect::RecoveryOrdered { id, new_gs } => Some((*id, *new_gs)),
        _ => None,
    }
}

fn root() -> Caller {
    Caller {
        user: "root".into(),
        groups: vec!["staff".into()],
        superuser: true,
        ..Caller::default()
    }
}

fn note() -> XAttrName {
    XAttrName { space: XAttrSpace::User, name: "note".into() }
}

fn snapshots(w: &mut World) {
    for path in ["/d", "/n"] {
        w.mkdirs(path);
        w.submit(AllowSnapshot { path: path.into() });
    }
    let (names_max, space_max) =
        (QuotaChange::Set { max: 10_000 }, QuotaChange::Set { max: 1 << 40 });
    w.submit(SetQuota { path: "/d".into(), names_max, space_max });
    let space_max = QuotaChange::Set { max: 1 << 40 };
    // Of SSDs.
    w.submit(SetTypeQuota { path: "/d".into(), kind: 1, space_max, keeps_names: true, names: 0 });
    w.submit(SetStoragePolicy { path: "/d".into(), policy: Some("ONE_SSD".into()) });
}

/// A file through all that happens to files.
fn files(w: &mut World) {
    let file = w.create("/d/f");
    let open = || ("client".to_string(), "/d/f".to_string());
    let first = w.add_block("/d/f", None, true);
    let (holder, path) = open();
    w.submit(Fsync { path, file: None, holder, last_len: Some(3) });
    let block = first.reference();
    let bumped = w.submit(UpdateBlockForPipeline { holder: "client".into(), block });
    let Outcome::Stamp(gs) = bumped else { panic!("{bumped:?}") };
    let new = BlockRef { gs, len: 9, ..block };
    w.submit(UpdatePipeline { holder: "client".into(), old: block, new });
    w.noise();
    let second = w.add_block("/d/f", Some(new), false);
    let (holder, path) = open();
    w.submit(AbandonBlock { path, file: None, holder, block: second.reference() });
    let untold = w.add_block("/d/f", Some(new), false);
    w.submit(WithdrawBlock { file: untold.file, block: untold.reference() });
    let units = vec![Some(4)];
    let crcs = BlockCrcs { id: new.id, gs, units };
    w.submit(CompleteBlocks { blocks: vec![crcs] });
    let third = w.add_block("/d/f", Some(new), true);
    w.submit(RenewLease { holder: "client".into() });
    w.submit(RenewAllLeases {});
    let last = BlockRef { len: 20, ..third.reference() };
    w.complete("/d/f", Some(last));
    let crcs = BlockCrcs { id: last.id, gs: last.gs, units: vec![Some(6)] };
    w.submit(RecordUnitCrcs { blocks: vec![crcs] });
    w.submit(ReplaceCrc { id: last.id, gs: last.gs, recorded: 6, crc32c: 8 });
    w.submit(TouchAccessTime { file });

    w.submit(CreateSnapshot { path: "/d".into(), name: "s".into() });
    w.noise();
    let cut = |new_len| Truncate {
        path: "/d/f".into(),
        new_len,
        holder: "client".into(),
        client_machine: "host".into(),
    };
    let outcome = w.submit(cut(20));
    w.noise();
    w.synchronize(outcome, 11);
    let outcome = w.submit(cut(19));
    w.synchronize(outcome, 10);
    w.submit(Append {
        path: "/d/f".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: true,
        replicas: READY,
    });
    w.complete("/d/f", None);
    for (path, is_released) in [("/d/g", false), ("/d/h", true)] {
        let file = w.create(path);
        w.add_block(path, None, true);
        let outcome = match is_released {
            true => w.submit(ReleaseLease { file, replicas: READY }),
            false => {
                let holder = "other".into();
                w.submit(RecoverLease { path: path.into(), holder, replicas: READY })
            }
        };
        w.noise();
        w.synchronize(outcome, 7);
    }
}

fn attributes(w: &mut World) {
    let path = || "/d/f".to_string();
    w.submit(SetReplication { path: path(), replication: 5 });
    w.submit(SetPermission { path: path(), mode: 0o600 });
    w.submit(SetOwner { path: path(), owner: Some("ann".into()), group: None });
    w.submit(SetTimes { path: path(), mtime: Some(5), atime: Some(6) });
    let user = AclEntry {
        scope: AclScope::Access,
        kind: AclKind::User,
        name: Some("bob".into()),
        permission: 7,
    };
    w.submit(ChangeAcl { path: path(), change: AclChange::Modify { entries: vec![user] } });
    let value = vec![1, 2, 3];
    w.submit(SetXAttr { path: path(), name: note(), value, create: true, replace: false });
    w.noise();
    w.submit(RemoveXAttr { path: path(), name: note() });
    w.submit(SatisfyStoragePolicy { path: path() });
    w.submit(RenameSnapshot { path: "/d".into(), from: "s".into(), to: "t".into() });
    w.submit(CreateSnapshot { path: "/d".into(), name: "u".into() });
    for name in ["u", "t"] {
        w.submit(DeleteSnapshot { path: "/d".into(), name: name.into() });
    }
    while matches!(w.submit(CollectSnapshot {}), Outcome::Removed { done: true, .. }) {}
    w.submit(DisallowSnapshot { path: "/d".into() });
    w.write("/d/x", 5);
    w.write("/d/y", 6);
    w.submit(Concat { target: "/d/x".into(), sources: vec!["/d/y".into()] });
    w.submit(Rename { src: "/d/x".into(), dst: "/d/z".into() });
    w.submit(RenameTo { src: "/d/z".into(), dst: "/d/g".into(), overwrite: true, to_trash: false });
    w.submit(Delete { path: "/many".into(), recursive: true });
    w.submit(Purge { limit: 3 });
    w.submit(Purge { limit: 1000 });
}

fn policies(w: &mut World) {
    let added = w.submit(AddEcPolicies {
        policies: vec![PolicySpec { codec: "rs".into(), k: 4, m: 2, cell_len: 1 << 16 }],
    });
    let Outcome::PoliciesAdded(added) = added else { panic!("{added:?}") };
    let name = added[0].policy.as_ref().unwrap().name.clone();
    w.submit(EnableEcPolicy { name: name.clone() });
    w.mkdirs("/e");
    w.submit(SetEcPolicy { path: "/e".into(), policy: Some(name.clone()) });
    w.write("/e/f", 1 << 18);
    w.submit(UnsetEcPolicy { path: "/e".into() });
    w.submit(DisableEcPolicy { name: name.clone() });
    w.submit(RemoveEcPolicy { name });
    let pool = |mode| CachePoolSpec {
        name: "pool".into(),
        owner: None,
        group: None,
        mode: Some(mode),
        limit: None,
        replication: None,
        ttl_max_ms: None,
    };
    w.submit(AddCachePool { pool: pool(0o755) });
    w.submit(ModifyCachePool { pool: pool(0o700) });
    let directive = CacheDirectiveSpec {
        path: Some("/e".into()),
        pool: Some("pool".into()),
        ..CacheDirectiveSpec::default()
    };
    w.submit(AddCacheDirective { directive: directive.clone() });
    let added = w.submit(AddCacheDirective { directive });
    let Outcome::CacheDirective(id) = added else { panic!("{added:?}") };
    let directive = CacheDirectiveSpec { replication: Some(2), ..CacheDirectiveSpec::default() };
    w.submit(ModifyCacheDirective { id: Some(id as i64), directive });
    w.noise();
    w.submit(RemoveCacheDirective { id: id as i64 });
    w.submit(RemoveCachePool { name: "pool".into() });
}

fn tokens(w: &mut World) {
    w.submit(AddTokenKey { secret: Secret([3; SECRET_LEN]), lasts_ms: 1 << 30 });
    let issue = IssueToken {
        owner: "ann@R".into(),
        renewer: "yarn".into(),
        real_user: "oozie".into(),
        lasts_ms: 1 << 20,
        renew_ms: 1 << 10,
    };
    // One that ends at once.
    w.submit(IssueToken { renew_ms: 0, ..issue.clone() });
    let Outcome::Token(second) = w.submit(issue) else { panic!("no token") };
    let number = second.number;
    w.submit(RenewToken { number, renew_ms: 1 << 11 });
    w.noise();
    w.submit(CancelToken { number });
    w.submit(RemoveEndedTokens { from: 0 });
}

fn zones(w: &mut World) {
    w.mkdirs("/zone");
    w.submit(CreateEncryptionZone { path: "/zone".into(), key_name: "k".into(), suite: 2 });
    let key = |n: u8| FileKey { key: vec![n; 16], iv: vec![n; 16], key_version: "k@0".into() };
    let (create, key_name) = (w.creation("/zone/f").into(), "k".to_string());
    let outcome = w.submit(CreateEncrypted { create, key_name, key: key(1) });
    let Outcome::Created { status, .. } = outcome else { panic!("{outcome:?}") };
    w.complete("/zone/f", None);
    let (file, zone) = (status.inode.id, status.inode.parent);
    let key_version = Some("k@1".to_string());
    w.submit(ReencryptEncryptionZone { path: "/zone".into(), key_version });
    let submitted_ms = w.now_ms;
    let files = vec![RenewedKey { file, old: key(1), new: key(2) }];
    w.submit(AdvanceReencryption { zone, submitted_ms, files, failed: 0, is_last: true });
}

fn groups(w: &mut World) {
    let name = "RS-3-2-contiguous".to_string();
    w.submit(EnableEcPolicy { name: name.clone() });
    w.mkdirs("/c");
    w.submit(SetEcPolicy { path: "/c".into(), policy: Some(name) });
    let mut members = Vec::new();
    for path in ["/c/f", "/c/g", "/c/h"] {
        let BlockRef { id, gs, len } = w.write(path, 1 << 20);
        let units = vec![Some(5)];
        w.submit(RecordUnitCrcs { blocks: vec![BlockCrcs { id, gs, units }] });
        members.push(NewMember { id, gs, len, crc32c: 5 });
    }
    let begin = |w: &mut World| {
        let (policy, members, supersedes) = (PolicyId(34), members.clone(), Vec::new());
        let outcome = w.submit(BeginEncode { policy, members, supersedes });
        let Outcome::EncodeBegun { handle, gs } = outcome else { panic!("{outcome:?}") };
        (handle, gs)
    };
    let (handle, gs) = begin(w);
    w.submit(Abandon { handle });
    let parity = ParityRecord { len: 1 << 21, crc32c: 7 };
    let checksum = ChecksumShape { kind: 2, bytes_per_checksum: 512 };
    let BlockRef { id, gs: of_member, len } = w.write("/c/i", 1 << 20);
    let member = AdoptedMember { id, gs: of_member, len, crc32c: 5, sums_crc32c: 6 };
    let adopted = w.submit(Adopt {
        handle,
        gs,
        policy: PolicyId(34),
        members: vec![Some(member), None, None],
        data_len: len,
        parities: vec![Some(parity); 2],
        checksum,
    });
    assert_eq!(adopted, Outcome::Done);
    let (handle, gs) = begin(w);
    w.noise();
    let sum = |slot| MemberSum { slot, crc32c: 5, sums_crc32c: 6 };
    let formed = w.submit(Form {
        handle,
        gs,
        members: (0..3).map(sum).collect(),
        parities: vec![parity; 2],
        checksum,
    });
    assert_eq!(formed, Outcome::Done);
    w.submit(Delete { path: "/c/g".into(), recursive: false });
    let work = GroupPauses { form: true, ..GroupPauses::default() };
    w.submit(PauseGroups { work, pause: true });
    w.submit(BeginDissolve { handle });
    let file = block::get(&w.mirror, members[0].id).unwrap().unwrap().file;
    w.submit(Convert { files: vec![file], policy: "replication".into() });
    w.submit(Dissolve { handle });
    let name = "RS-3-2-1024k".to_string();
    w.submit(EnableEcPolicy { name: name.clone() });
    w.mkdirs("/stripes");
    w.submit(SetEcPolicy { path: "/stripes".into(), policy: Some(name) });
    let mut files = Vec::new();
    for path in ["/stripes/f", "/c/copy"] {
        let written = w.write(path, 1 << 20);
        let file = block::get(&w.mirror, written.id).unwrap().unwrap().file;
        files.push(inode::get(&w.mirror, file).unwrap().unwrap());
    }
    let [file, copy] = &files[..] else { panic!("two files") };
    let (file, copy, mtime) = (file.id, copy.id, file.mtime);
    let swapped = w.submit(SwapBlocks { file, copy, mtime, len: 1 << 20 });
    assert_eq!(swapped, Outcome::Converted(vec![Conversion::Done]));
}

fn orders(w: &mut World) {
    w.submit(SetSafeMode { on: true });
    w.submit(SetBalancerBandwidth { bytes_per_second: 1 << 20 });
    let order =
        |host: &str, intent| NodeOrder { name: NodeName { host: host.into(), port: 9866 }, intent };
    let ordered =
        vec![order("dn1", NodeIntent::Leave), order("dn2", NodeIntent::Away { until_ms: 7 })];
    w.submit(OrderNodes { withdrawn: Vec::new(), ordered });
    w.noise();
    w.submit(SetSafeMode { on: false });
    w.submit(WatchEvents {});
    w.submit(PrepareUpgrade { start_ms: 7, sequence: 5 });
    w.noise();
    w.submit(Release { upgrade: true, restored: false });
}

fn packs(w: &mut World) {
    let name = "RS-3-2-contiguous".to_string();
    w.mkdirs("/small");
    w.submit(SetEcPolicy { path: "/small".into(), policy: Some(name) });
    let mut blocks = Vec::new();
    for path in ["/small/f", "/small/g", "/small/h"] {
        let BlockRef { id, gs, len } = w.write(path, 1000);
        let units = vec![Some(5)];
        w.submit(RecordUnitCrcs { blocks: vec![BlockCrcs { id, gs, units }] });
        blocks.push(PackedBlock { id, gs, len, crc32c: 5, from: None });
    }
    let begin = |w: &mut World| {
        let blocks = blocks.clone();
        let outcome = w.submit(BeginPack { policy: PolicyId(34), storage_policy: 0, blocks });
        let Outcome::EncodeBegun { handle, gs } = outcome else { panic!("{outcome:?}") };
        (handle, gs)
    };
    let (container, _) = begin(w);
    assert_eq!(w.submit(AbandonPack { container }), Outcome::Flag(true));
    let (container, gs) = begin(w);
    let checksum = ChecksumShape { kind: 2, bytes_per_checksum: 512 };
    let mut index = PackIndex::new((container, gs), 2, 512).unwrap();
    for (slot, block) in [1, 2].into_iter().zip(&blocks[1..]) {
        index.push(slot, (block.id, block.gs), (1000, 5)).unwrap();
    }
    let (len, left_out, crcs) = (index.container_len(), vec![0], vec![5, 5]);
    let sealed = w.submit(SealPack { container, gs, len, crc32c: 6, left_out, crcs, checksum });
    assert_eq!(sealed, Outcome::Done);
    w.noise();
    let members = vec![NewMember { id: container, gs, len, crc32c: 6 }];
    let outcome = w.submit(BeginEncode { policy: PolicyId(34), members, supersedes: Vec::new() });
    let Outcome::EncodeBegun { handle, gs: group_gs } = outcome else { panic!("{outcome:?}") };
    let formed = w.submit(Form {
        handle,
        gs: group_gs,
        members: vec![MemberSum { slot: 0, crc32c: 6, sums_crc32c: 6 }],
        parities: vec![ParityRecord { len: 1 << 21, crc32c: 7 }; 2],
        checksum,
    });
    assert_eq!(formed, Outcome::Done);
    assert_eq!(w.submit(Pack { container, gs }), Outcome::Flag(true));
    w.noise();
    w.submit(BeginUnpack { blocks: vec![blocks[2].id], waits: true });
    w.noise();
    w.submit(Unpack { blocks: vec![blocks[2].id] });
    assert_eq!(w.submit(Repack { container }), Outcome::Flag(true));
    w.submit(Delete { path: "/small/g".into(), recursive: false });
    assert_eq!(w.submit(EndPack { container }), Outcome::Done);
    found_container(w);
}

/// A container that nobody knows, with its group.
fn found_container(w: &mut World) {
    let BlockRef { id, gs, len } = w.write("/small/i", 1000);
    let units = vec![Some(5)];
    w.submit(RecordUnitCrcs { blocks: vec![BlockCrcs { id, gs, units }] });
    let blocks = vec![PackedBlock { id, gs, len, crc32c: 5, from: None }];
    let outcome = w.submit(BeginPack { policy: PolicyId(34), storage_policy: 0, blocks });
    let Outcome::EncodeBegun { handle: container, gs: of } = outcome else { panic!("{outcome:?}") };
    w.submit(AbandonPack { container });
    let members = vec![NewMember { id, gs, len, crc32c: 5 }];
    let outcome = w.submit(BeginEncode { policy: PolicyId(34), members, supersedes: Vec::new() });
    let Outcome::EncodeBegun { handle, gs: group_gs } = outcome else { panic!("{outcome:?}") };
    w.submit(Abandon { handle });
    let checksum = ChecksumShape { kind: 2, bytes_per_checksum: 512 };
    let mut index = PackIndex::new((container, of), 2, 512).unwrap();
    index.push(0, (id, gs), (1000, 5)).unwrap();
    let data_len = index.container_len();
    let member = AdoptedMember { id: container, gs: of, len: data_len, crc32c: 6, sums_crc32c: 6 };
    let adopted = w.submit(Adopt {
        handle,
        gs: group_gs,
        policy: PolicyId(34),
        members: vec![Some(member), None, None],
        data_len,
        parities: vec![Some(ParityRecord { len: 1 << 21, crc32c: 7 }); 2],
        checksum,
    });
    assert_eq!(adopted, Outcome::Done);
    let block = AdoptedBlock { slot: 0, offset: 0, id, gs, len, crc32c: 5 };
    let (storage_policy, blocks, all) = (0, vec![block], Some((1, len)));
    let taken = w.submit(AdoptPacked { container, gs: of, storage_policy, blocks, all });
    assert_eq!(taken, Outcome::Flag(true));
    container_alone(w);
}

/// One of whose group nothing is known.
fn container_alone(w: &mut World) {
    let BlockRef { id, gs, len } = w.write("/small/j", 1000);
    let units = vec![Some(5)];
    w.submit(RecordUnitCrcs { blocks: vec![BlockCrcs { id, gs, units }] });
    let blocks = vec![PackedBlock { id, gs, len, crc32c: 5, from: None }];
    let outcome = w.submit(BeginPack { policy: PolicyId(34), storage_policy: 0, blocks });
    let Outcome::EncodeBegun { handle: container, gs } = outcome else { panic!("{outcome:?}") };
    w.submit(AbandonPack { container });
    let checksum = ChecksumShape { kind: 2, bytes_per_checksum: 512 };
    let (len, crc32c, policy) = (2000, 6, PolicyId(34));
    let adopted = w.submit(AdoptContainer { container, gs, len, crc32c, policy, checksum });
    assert_eq!(adopted, Outcome::Done);
}

/// The world after commands of all kinds.
fn played(dir: &Path, seed: u64) -> World {
    let mut world = World::new(dir, seed);
    snapshots(&mut world);
    for part in [files, attributes, policies, tokens, zones, groups, orders, packs] {
        for _ in 0..8 {
            world.noise();
        }
        part(&mut world);
    }
    // A command that is new is missing until it is played here.
    assert_eq!(world.logged, Command::NAMES.iter().copied().collect());
    world
}

#[test]
fn a_kill_at_any_record_leaves_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let world = played(dir.path(), 1);
    let image = copy(dir.path());
    let log = world.log.file_name().unwrap();
    let whole = fs::read(image.path().join(log)).unwrap();
    let mut end = world.states[0].0;
    for (number, (next, records)) in world.states.iter().enumerate() {
        // At the end of the record, and of some inside the one after it.
        let after = world.states.get(number + 1).map_or(*next, |(after, _)| *after);
        let offset = if number % 2 == 0 { number as u64 * 7919 } else { 0 };
        let inside = next + offset % (after - next).max(1);
        for len in BTreeSet::from([*next, inside]) {
            let torn = copy(image.path());
            fs::write(torn.path().join(log), &whole[..len as usize]).unwrap();
            let again = open_with(torn.path(), settings());
            let found = again.read(|now| dump(now));
            assert!(found == *records, "record {number}, cut after {len} bytes");
        }
        end = end.max(*next);
    }
    assert_eq!(end, end_of(&image.path().join(log)));
}

#[test]
fn a_kill_between_checkpoints_leaves_what_was_acknowledged_and_calls_get_their_first_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = played(dir.path(), 2);
    let often = NamesystemOptions { checkpoint_entries: 5, ..settings() };
    let image = copy(dir.path());
    let again = open_with(image.path(), often.clone());
    let before = again.read(|now| dump(now));
    assert!(before == world.states.pop().unwrap().1);
    for (entry, outcome) in &world.once {
        let answer = again.submit_blocking(entry.clone()).unwrap();
        assert_eq!(answer, outcome.clone(), "{:?}", entry.command);
    }
    assert!(again.read(|now| dump(now)) == before);
    // The same with the store written in between.
    world.namesystem = again;
    world.log = segments(image.path()).pop().unwrap();
    world.states = vec![(0, before)];
    for _ in 0..40 {
        world.noise();
        let killed = copy(image.path());
        let found = open_with(killed.path(), often.clone()).read(|now| dump(now));
        assert!(found == dump(&world.mirror));
    }
    let policies = world.namesystem.read(|now| query::policies(now)).unwrap();
    assert!(!policies.is_empty());
}
