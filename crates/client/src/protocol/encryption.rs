//! Messages about encryption to the client's own types.

use crate::types::*;
use cairn_wire::proto::hdfs::*;

fn suite(number: i32) -> CipherSuite {
    match CipherSuiteProto::try_from(number) {
        Ok(CipherSuiteProto::AesCtrNopadding) => CipherSuite::AesCtr,
        Ok(CipherSuiteProto::Sm4CtrNopadding) => CipherSuite::Sm4Ctr,
        Ok(CipherSuiteProto::Unknown) | Err(_) => CipherSuite::Unknown(number),
    }
}

pub(crate) fn file(proto: FileEncryptionInfoProto) -> FileEncryption {
    FileEncryption {
        suite: suite(proto.suite),
        protocol_version: proto.crypto_protocol_version,
        key_name: proto.key_name,
        key_version: proto.ez_key_version_name,
        iv: proto.iv,
        encrypted_key: proto.key,
    }
}

pub(crate) fn zone(proto: EncryptionZoneProto) -> EncryptionZone {
    EncryptionZone {
        id: proto.id,
        path: proto.path,
        suite: suite(proto.suite),
        protocol_version: proto.crypto_protocol_version,
        key_name: proto.key_name,
    }
}

pub(crate) fn reencryption(proto: ZoneReencryptionStatusProto) -> ReencryptionStatus {
    use ReencryptionStateProto as State;
    let state = match State::try_from(proto.state) {
        Ok(State::Processing) => ReencryptionState::Processing,
        Ok(State::Completed) => ReencryptionState::Completed,
        Ok(State::Submitted) | Err(_) => ReencryptionState::Submitted,
    };
    ReencryptionStatus {
        id: proto.id,
        path: proto.path,
        state,
        key_version: proto.ez_key_version_name,
        submitted_ms: proto.submission_time,
        is_canceled: proto.canceled,
        reencrypted: proto.num_reencrypted,
        failures: proto.num_failures,
        completed_ms: proto.completion_time.filter(|time| *time != 0),
        last_file: proto.last_file.filter(|file| !file.is_empty()),
    }
}
