//! Tests of the namespace through its public interface.

mod acls;
mod caching;
mod encryption;
mod events;
mod files;
mod golden;
mod held_copies;
mod leases;
mod model;
mod ordered_snapshots;
mod permissions;
mod policies;
mod protected;
mod quota_model;
mod quotas;
mod replay;
mod snapshot_model;
mod snapshots;
mod storage_policies;
mod support;
mod tree;
mod truncate;
mod truncate_snapshots;
mod xattrs;
