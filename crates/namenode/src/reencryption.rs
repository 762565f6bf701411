//! Encrypting the keys of the files in a zone by the newest version of the zone's key: one zone after the other, some
//! files at a time.
//!
//! What is asked for and how far it got is in the zone's record, so that a NameNode goes on after its start: files that
//! have keys of the new version already are passed over.
//!
//! Source: Hadoop 3.5.0 `ReencryptionHandler`, `ReencryptionUpdater`.

use std::sync::Arc;

use cairn_kms::KmsError;
use cairn_namespace::encoding::to_record;
use cairn_namespace::encryption::{FileKey, PlacedZone, Reencryption, Walk};
use cairn_namespace::ops::encryption::{AdvanceReencryption, RenewedKey};
use cairn_namespace::{InodeId, Outcome, query};
use cairn_operate::workers::Worker;
use cairn_process::disk_work::step_aside;

use crate::journal::ENTRY_LEN_MAX;
use crate::key_provider::KeyProvider;
use crate::node::NameNode;
use crate::refusal::{Refusal, unexpected};

/// Works on zones as they are asked for, and on what a start finds.
pub(crate) async fn run(node: Arc<NameNode>, worker: Arc<Worker>) {
    let Some(provider) = &node.keys else { return };
    loop {
        worker.pass().await;
        while node.safe_mode_tip().is_none() {
            match next_zone(&node) {
                Ok(Some((zone, progress))) => {
                    node.reencryptor.set(Some(zone.root));
                    let carried = carry_on(&node, &worker, provider, &zone, &progress).await;
                    node.reencryptor.set(None);
                    if let Err(refusal) = carried {
                        tracing::warn!(zone = zone.path, refusal = %refusal.0, "re-encryption waits");
                        worker.failed(&refusal.0);
                        break;
                    }
                }
                Ok(None) => break,
                Err(refusal) => {
                    tracing::error!(refusal = %refusal.0, "encryption zones cannot be read");
                    break;
                }
            }
        }
        let rest = tokio::time::sleep(node.config.encryption.reencryption_interval);
        let due = async {
            tokio::select! {
                () = node.reencryptor.woken() => {}
                () = rest => {}
            }
        };
        worker.rest(due).await;
    }
}

/// The first zone that is to be worked on.
fn next_zone(node: &NameNode) -> Result<Option<(PlacedZone, Reencryption)>, Refusal> {
    let (zones, _) =
        node.ns.read(|store| query::reencrypted_zones(store, InodeId::NONE, usize::MAX))?;
    Ok(zones.into_iter().find_map(|placed| {
        let running = placed.zone.reencryption.clone().filter(Reencryption::is_running)?;
        Some((placed, running))
    }))
}

/// Works on a zone to its end, or until that is cancelled.
async fn carry_on(
    node: &NameNode,
    worker: &Worker,
    provider: &KeyProvider,
    placed: &PlacedZone,
    progress: &Reencryption,
) -> Result<(), Refusal> {
    let (version, limit) = (&progress.key_version, node.config.encryption.reencryption_batch);
    tracing::info!(zone = placed.path, version, "re-encryption begins");
    let mut walk = Walk::over(placed.root);
    let (mut found, mut done) = (Vec::new(), 0);
    loop {
        worker.pass().await;
        while found.len() < limit && !walk.is_done() {
            node.ns.read(|store| walk.step(store, version, &mut found))?;
            step_aside().await;
        }
        let batch: Vec<_> = found.drain(..found.len().min(limit)).collect();
        done += batch.len() as u64;
        let is_last = walk.is_done() && found.is_empty();
        node.check_safe_mode(|| "Cannot re-encrypt".to_string())?;
        let (files, failed) = renew(provider, placed, batch).await;
        for advance in advances(placed.root, progress.submitted_ms, files, failed, is_last) {
            match node.submit_own(advance).await? {
                Outcome::Flag(true) => {}
                Outcome::Flag(false) => {
                    tracing::info!(zone = placed.path, is_last, "re-encryption ended");
                    return Ok(());
                }
                other => return Err(unexpected(&other)),
            }
        }
        worker.has_done(done, None, "files");
    }
}

/// The room in an entry of the log for keys, in bytes; the rest is for what else the entry says.
const KEYS_LEN_MAX: usize = ENTRY_LEN_MAX - 1024;

/// What is to be said of a batch, in as many commands as it takes for each to fit into an entry of the log. A key that
/// is too long for any counts as failed.
fn advances(
    zone: InodeId,
    submitted_ms: u64,
    files: Vec<RenewedKey>,
    failed: u64,
    is_last: bool,
) -> Vec<AdvanceReencryption> {
    let empty =
        || AdvanceReencryption { zone, submitted_ms, files: Vec::new(), failed: 0, is_last: false };
    let (mut done, mut open, mut room) = (Vec::new(), empty(), KEYS_LEN_MAX);
    open.failed = failed;
    for renewed in files {
        let len = to_record(0, &renewed).len();
        if len > KEYS_LEN_MAX {
            tracing::warn!(file = %renewed.file, len, "not re-encrypted: the key is too long");
            open.failed += 1;
            continue;
        }
        if len > room {
            done.push(std::mem::replace(&mut open, empty()));
            room = KEYS_LEN_MAX;
        }
        room -= len;
        open.files.push(renewed);
    }
    open.is_last = is_last;
    done.push(open);
    done
}

/// How often parts of a batch are asked for that was refused as a whole.
const PARTS_MAX: usize = 64;

/// The new keys of files, and for how many there are none. One key that the server refuses does not keep the others of
/// its batch from being renewed: what is refused is asked for again in halves.
async fn renew(
    provider: &KeyProvider,
    placed: &PlacedZone,
    batch: Vec<(InodeId, FileKey)>,
) -> (Vec<RenewedKey>, u64) {
    let (mut renewed, mut failed, mut parts) = (Vec::new(), 0, 0);
    let mut waiting = vec![batch];
    while let Some(mut batch) = waiting.pop() {
        if batch.is_empty() {
            continue;
        }
        let old: Vec<FileKey> = batch.iter().map(|(_, key)| key.clone()).collect();
        match provider.renew(&placed.zone.key_name, &old).await {
            Ok(new) => {
                let pairs = batch.into_iter().zip(new);
                renewed.extend(pairs.map(|((file, old), new)| RenewedKey { file, old, new }));
            }
            Err(KmsError::Server { .. }) if batch.len() > 1 && parts < PARTS_MAX => {
                parts += 2;
                let half = batch.split_off(batch.len() / 2);
                waiting.extend([half, batch]);
            }
            Err(error) => {
                let (files, first) = (batch.len(), batch[0].0);
                tracing::warn!(zone = placed.path, %error, files, %first, "not re-encrypted");
                failed += files as u64;
            }
        }
    }
    (renewed, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewed(file: u64, key_len: usize) -> RenewedKey {
        let key = |byte| FileKey {
            key: vec![byte; key_len],
            iv: vec![byte; 16],
            key_version: "k@1".into(),
        };
        RenewedKey { file: InodeId(file), old: key(1), new: key(2) }
    }

    #[test]
    fn a_batch_of_any_length_fits_into_entries() {
        let mut files: Vec<_> = (1..=20_000).map(|file| renewed(file, 32)).collect();
        files.insert(7, renewed(20_001, ENTRY_LEN_MAX));
        let wanted: Vec<_> =
            files.iter().map(|it| it.file).filter(|file| file.0 != 20_001).collect();
        let advances = advances(InodeId(5), 9, files, 3, true);
        assert!(advances.len() > 1);
        for advance in &advances {
            assert!(to_record(0, advance).len() < ENTRY_LEN_MAX);
            assert_eq!((advance.zone, advance.submitted_ms), (InodeId(5), 9));
        }
        let told: Vec<_> = advances.iter().flat_map(|it| &it.files).map(|it| it.file).collect();
        assert_eq!(told, wanted);
        assert_eq!(advances.iter().map(|it| it.failed).sum::<u64>(), 4);
        let (last, before) = advances.split_last().unwrap();
        assert!(last.is_last && before.iter().all(|it| !it.is_last));
    }

    #[test]
    fn an_empty_batch_is_told_as_well() {
        let advances = advances(InodeId(5), 9, Vec::new(), 0, true);
        assert!(matches!(&advances[..], [only] if only.is_last && only.files.is_empty()));
    }
}
