//! Encryption zones: making and listing them, keys for new files, and encrypting keys anew.

use cairn_master::OpError;
use cairn_namespace::encryption::{PlacedZone, Reencryption};
use cairn_namespace::ops::create::{Create, CreateEncrypted};
use cairn_namespace::ops::encryption::{CreateEncryptionZone, ReencryptEncryptionZone};
use cairn_namespace::{InodeId, NamespaceError, Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;

use crate::key_provider::KeyProvider;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// How often a new file's zone may have changed while a key was fetched for it.
const CREATE_TRIES: usize = 10;

/// Source: Hadoop 3.5.0 `FSNamesystem#createEncryptionZone`.
pub async fn create_zone(node: &NameNode, call: &Call) -> Answer {
    let request: pb::CreateEncryptionZoneRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let (path, key_name) = (request.src, request.key_name.unwrap_or_default());
    let suite = suite_for_zone(node, call, &path, &key_name).await?;
    node.check_change(call, || format!("Cannot create encryption zone on {path}"))?;
    node.submit(call, CreateEncryptionZone { path, key_name, suite }).await?;
    answer(&pb::CreateEncryptionZoneResponseProto {})
}

/// The cipher suite for a new zone; any for a call that comes again.
async fn suite_for_zone(
    node: &NameNode,
    call: &Call,
    path: &str,
    key_name: &str,
) -> Result<u32, Refusal> {
    let Some(provider) = &node.keys else {
        return Err(Refusal::io(format!(
            "Can't create an encryption zone for {path} since no key provider is available."
        )));
    };
    if key_name.is_empty() {
        return Err(Refusal::io("Must specify a key name when creating an encryption zone"));
    }
    match provider.suite_of_key(key_name).await {
        Ok(suite) => Ok(suite),
        Err(refusal) => node.unless_answered(call, Err(refusal)).map(|()| 0),
    }
}

fn zone(placed: &PlacedZone) -> pb::EncryptionZoneProto {
    pb::EncryptionZoneProto {
        id: placed.root.0 as i64,
        path: placed.path.clone(),
        suite: placed.zone.suite,
        crypto_protocol_version: placed.zone.protocol_version,
        key_name: placed.zone.key_name.clone(),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getEZForPath`.
pub async fn get_zone(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetEZForPathRequestProto = call.decode()?;
    let path = &request.src;
    let found = node.query(call, |store, caller| query::zone_of_path(store, caller, path)).await?;
    answer(&pb::GetEZForPathResponseProto { zone: found.as_ref().map(zone) })
}

/// The root of the zone of a path, or of all.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#getEnclosingRoot`.
pub async fn get_enclosing_root(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetEnclosingRootRequestProto = call.decode()?;
    let path = request.filename.as_deref().unwrap_or_default();
    let found = node.query(call, |store, caller| query::zone_of_path(store, caller, path)).await?;
    let root = found.map_or_else(|| "/".to_string(), |placed| placed.path);
    answer(&pb::GetEnclosingRootResponseProto { enclosing_root_path: Some(root) })
}

/// The inode after which a list goes on. Java's ids have signs.
fn after(id: i64) -> InodeId {
    InodeId(u64::try_from(id).unwrap_or_default())
}

/// Source: Hadoop 3.5.0 `FSNamesystem#listEncryptionZones`.
pub async fn list_zones(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListEncryptionZonesRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let (after, limit) = (after(request.id), node.config.encryption.listed_zones_max);
    let (found, has_more) = node.ns.read(|store| query::zones(store, after, limit))?;
    let zones = found.iter().map(zone).collect();
    answer(&pb::ListEncryptionZonesResponseProto { zones, has_more })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#reencryptEncryptionZoneInt`.
pub async fn reencrypt_zone(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ReencryptEncryptionZoneRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let path = request.zone.clone();
    let starts = request.action() == pb::ReencryptActionProto::StartReencrypt;
    let action = if starts { "START" } else { "CANCEL" };
    let what = || format!("NameNode in safemode, cannot {action} re-encryption on zone {path}");
    node.check_change(call, what)?;
    let Some(provider) = &node.keys else {
        return Err(Refusal::io("No key provider configured, re-encryption operation is rejected"));
    };
    let key_version = match starts {
        true => {
            let found = current_version(node, call, provider, &path).await;
            match found {
                Ok(version) => Some(version),
                Err(refusal) => {
                    // It was begun by the first of these calls.
                    node.unless_answered(call, Err(refusal))?;
                    return answer(&pb::ReencryptEncryptionZoneResponseProto {});
                }
            }
        }
        false => None,
    };
    node.submit(call, ReencryptEncryptionZone { path, key_version }).await?;
    if starts {
        node.reencryptor.wake();
    }
    answer(&pb::ReencryptEncryptionZoneResponseProto {})
}

async fn current_version(
    node: &NameNode,
    call: &Call,
    provider: &KeyProvider,
    path: &str,
) -> Result<String, Refusal> {
    let name = node.query(call, |store, caller| query::key_of_zone(store, caller, path)).await?;
    provider.current_version(&name).await
}

/// Source: Hadoop 3.5.0 `FSNamesystem#listReencryptionStatus`.
pub async fn list_reencryption_status(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListReencryptionStatusRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let (after, limit) = (after(request.id), node.config.encryption.listed_reencryptions_max);
    let (found, has_more) = node.ns.read(|store| query::reencrypted_zones(store, after, limit))?;
    let statuses = found.iter().filter_map(|placed| {
        let progress = placed.zone.reencryption.as_ref()?;
        Some(reencryption_status(placed, progress, node.reencryptor.is_at(placed.root)))
    });
    let statuses = statuses.collect();
    answer(&pb::ListReencryptionStatusResponseProto { statuses, has_more })
}

/// Source: Hadoop 3.5.0 `PBHelperClient#convert(ZoneReencryptionStatus)`.
fn reencryption_status(
    placed: &PlacedZone,
    progress: &Reencryption,
    is_under_way: bool,
) -> pb::ZoneReencryptionStatusProto {
    let state = match (progress.is_running(), is_under_way) {
        (false, _) => pb::ReencryptionStateProto::Completed,
        (true, true) => pb::ReencryptionStateProto::Processing,
        (true, false) => pb::ReencryptionStateProto::Submitted,
    };
    pb::ZoneReencryptionStatusProto {
        id: placed.root.0 as i64,
        path: placed.path.clone(),
        state: state as i32,
        ez_key_version_name: progress.key_version.clone(),
        submission_time: progress.submitted_ms as i64,
        canceled: progress.cancelled,
        num_reencrypted: progress.done,
        num_failures: progress.failed,
        completion_time: Some(progress.completed_ms.unwrap_or_default() as i64),
        last_file: progress.last_file.clone(),
    }
}

/// Makes a file that is in an encryption zone: with a key that is fetched for it, and again with another one if its
/// zone is another one by then.
///
/// Deviation: without a key provider the file is refused, where Hadoop makes one that is not encrypted.
///
/// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp#getEncryptionKeyInfo`.
pub(super) async fn create(
    node: &NameNode,
    call: &Call,
    create: Create,
    versions: &[i32],
) -> Result<Outcome, Refusal> {
    let path = create.path.clone();
    let mut refused = None;
    for _ in 0..CREATE_TRIES {
        let placed =
            node.query(call, |store, caller| query::zone_of_new_file(store, caller, &path)).await?;
        let Some(placed) = placed else {
            return Ok(node.submit_or_recover(call, create, &path).await?);
        };
        check_version(placed.zone.protocol_version, versions)?;
        let Some(provider) = &node.keys else {
            return Err(Refusal::io(format!(
                "Can't create {path} in encryption zone {} since no key provider is available.",
                placed.path
            )));
        };
        let key_name = placed.zone.key_name;
        let key = provider.file_key(&key_name).await?;
        let command = CreateEncrypted { create: Box::new(create.clone()), key_name, key };
        match node.submit_or_recover(call, command, &path).await {
            Err(error @ OpError::Refused(NamespaceError::RetryStartFile(_))) => {
                refused = Some(error);
            }
            done => return Ok(done?),
        }
    }
    Err(refused.map_or_else(|| Refusal::io("Try again"), Refusal::from))
}

/// What Hadoop refuses clients with that know another way to encrypt.
const UNKNOWN_VERSION: &str = "org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException";

/// Source: Hadoop 3.5.0 `FSNamesystem#chooseProtocolVersion`.
fn check_version(required: i32, versions: &[i32]) -> Result<(), Refusal> {
    if versions.contains(&required) {
        return Ok(());
    }
    // As Java shows what it knows of each.
    let shown = |version: &i32| {
        let (description, number, unknown) = match *version {
            2 => ("Encryption zones", 2, "null".to_string()),
            other => ("Unknown", 1, other.to_string()),
        };
        format!(
            "CryptoProtocolVersion{{description='{description}', version={number}, \
             unknownValue={unknown}}}"
        )
    };
    let provided: Vec<String> = versions.iter().map(shown).collect();
    Err(Refusal::new(
        UNKNOWN_VERSION,
        format!(
            "No crypto protocol versions provided by the client are supported. Client provided: \
             [{}] NameNode supports: [CryptoProtocolVersion{{description='Unknown', version=1, \
             unknownValue=null}}, {}]",
            provided.join(", "),
            shown(&2)
        ),
    ))
}
