//! `cairn crypto`: encryption zones, with the options and the answers of `hdfs crypto`.
//!
//! Source: Hadoop 3.5.0 `CryptoAdmin`.

use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_client::{
    ClientError, EncryptionZone, FileEncryption, FileSystem, Reencryption, ReencryptionState,
    ReencryptionStatus,
};
use cairn_net::date::Moment;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cairn crypto -createZone -keyName KEY -path PATH
       cairn crypto -listZones
       cairn crypto -getZone -path PATH
       cairn crypto -provisionTrash -path PATH
       cairn crypto -getFileEncryptionInfo -path PATH
       cairn crypto -reencryptZone {-start | -cancel} -path PATH
       cairn crypto -listReencryptionStatus";

/// Flags of `cairn crypto`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "cairn crypto OPTION...", after_help = USAGE)]
pub struct Args {
    /// An option of `hdfs crypto` with its values; -getZone tells the zone that a path is in
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    CreateZone { path: String, key: String },
    ListZones,
    GetZone { path: String },
    ProvisionTrash { path: String },
    GetFileEncryptionInfo { path: String },
    ReencryptZone { path: String, what: Reencryption },
    ListReencryptionStatus,
}

/// Carries out one option; exits with 1 for wrong words, 2 when the NameNode refuses or there is
/// nothing to tell.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let command = match parse(&args.words) {
        Ok(command) => command,
        Err(error) => {
            crate::complain!("cairn crypto: {error:#}\n{USAGE}");
            return Ok(ExitCode::from(1));
        }
    };
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    match carry_out(&fs, command, settings.json).await {
        Ok(code) => Ok(code),
        Err(error) => {
            crate::complain!("{}", output::first_line(&error));
            Ok(ExitCode::from(2))
        }
    }
}

fn parse(words: &[String]) -> Result<Command> {
    let (command, rest) = words.split_first().context("an option is missing")?;
    let mut rest = rest.to_vec();
    let named = command.trim_start_matches('-');
    let command = match named {
        "createZone" => Command::CreateZone {
            path: value(&mut rest, "path")?,
            key: value(&mut rest, "keyName")?,
        },
        "listZones" => Command::ListZones,
        "getZone" => Command::GetZone { path: value(&mut rest, "path")? },
        "provisionTrash" => Command::ProvisionTrash { path: value(&mut rest, "path")? },
        "getFileEncryptionInfo" => {
            Command::GetFileEncryptionInfo { path: value(&mut rest, "path")? }
        }
        "reencryptZone" => {
            let what = match (flag(&mut rest, "start"), flag(&mut rest, "cancel")) {
                (true, false) => Reencryption::Start,
                (false, true) => Reencryption::Cancel,
                _ => bail!("{command} takes either -start or -cancel"),
            };
            Command::ReencryptZone { path: value(&mut rest, "path")?, what }
        }
        "listReencryptionStatus" => Command::ListReencryptionStatus,
        _ => bail!("unknown option {command}"),
    };
    match rest.first() {
        None => Ok(command),
        Some(word) => bail!("-{named}: {word} is not understood"),
    }
}

/// Takes an option and its value out of the words.
fn value(words: &mut Vec<String>, name: &str) -> Result<String> {
    let missing = || format!("-{name} is missing, or its value");
    let at = position(words, name).filter(|at| at + 1 < words.len()).with_context(missing)?;
    words.remove(at);
    Ok(words.remove(at))
}

/// Takes an option without a value out of the words; whether it was there.
fn flag(words: &mut Vec<String>, name: &str) -> bool {
    position(words, name).map(|at| words.remove(at)).is_some()
}

fn position(words: &[String], name: &str) -> Option<usize> {
    words.iter().position(|word| word.starts_with('-') && word.trim_start_matches('-') == name)
}

async fn carry_out(fs: &FileSystem, command: Command, json: bool) -> Result<ExitCode, ClientError> {
    match command {
        Command::CreateZone { path, key } => {
            fs.create_encryption_zone(&path, &key).await?;
            fs.provision_trash(&path).await?;
            crate::say!("Added encryption zone {path}");
        }
        Command::ListZones => zones(&fs.encryption_zones().await?, json),
        Command::GetZone { path } => match fs.encryption_zone_of(&path).await? {
            Some(zone) => zones(&[zone], json),
            None => {
                crate::complain!("{path} is not in an encryption zone");
                return Ok(ExitCode::from(2));
            }
        },
        Command::ProvisionTrash { path } => {
            fs.provision_trash(&path).await?;
            crate::say!("Created a trash directory for {path}");
        }
        Command::GetFileEncryptionInfo { path } => match fs.require(&path).await?.encryption {
            Some(info) if json => crate::say!("{}", info_json(&info)),
            Some(info) => crate::say!("{}", info_text(&info)),
            None => {
                crate::complain!("No FileEncryptionInfo found for path {path}");
                return Ok(ExitCode::from(2));
            }
        },
        Command::ReencryptZone { path, what } => {
            fs.reencrypt_zone(&path, what).await?;
            let action = if what == Reencryption::Start { "START" } else { "CANCEL" };
            crate::say!(
                "re-encrypt command successfully submitted for zone: {path} action: {action}"
            );
        }
        Command::ListReencryptionStatus => statuses(&fs.reencryption_statuses().await?, json),
    }
    Ok(ExitCode::SUCCESS)
}

fn zones(zones: &[EncryptionZone], json: bool) {
    if json {
        crate::say!("{}", Value::from(zones.iter().map(zone_json).collect::<Vec<_>>()));
        return;
    }
    let width = zones.iter().map(|zone| zone.path.chars().count()).max().unwrap_or(0);
    for zone in zones {
        crate::say!("{:<width$}  {}", zone.path, zone.key_name);
    }
}

fn zone_json(zone: &EncryptionZone) -> Value {
    json!({
        "id": zone.id, "path": zone.path, "key": zone.key_name,
        "cipher_suite": zone.suite.to_string(), "protocol_version": zone.protocol_version,
    })
}

fn info_json(info: &FileEncryption) -> Value {
    json!({
        "cipher_suite": info.suite.to_string(), "protocol_version": info.protocol_version,
        "key": info.key_name, "key_version": info.key_version,
        "iv": hex(&info.iv), "encrypted_key": hex(&info.encrypted_key),
    })
}

/// In the form in which `hdfs crypto` shows it, for scripts that read that.
fn info_text(info: &FileEncryption) -> String {
    let description = if info.protocol_version == 2 { "Encryption zones" } else { "Unknown" };
    format!(
        "{{cipherSuite: {{name: {}, algorithmBlockSize: 16}}, cryptoProtocolVersion: \
         CryptoProtocolVersion{{description='{description}', version={}, unknownValue=null}}, \
         edek: {}, iv: {}, keyName: {}, ezKeyVersionName: {}}}",
        info.suite,
        info.protocol_version,
        hex(&info.encrypted_key),
        hex(&info.iv),
        info.key_name,
        info.key_version,
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn state_name(state: ReencryptionState) -> &'static str {
    match state {
        ReencryptionState::Submitted => "Submitted",
        ReencryptionState::Processing => "Processing",
        ReencryptionState::Completed => "Completed",
    }
}

fn statuses(statuses: &[ReencryptionStatus], json: bool) {
    if json {
        crate::say!("{}", Value::from(statuses.iter().map(status_json).collect::<Vec<_>>()));
        return;
    }
    let mut rows = vec![
        [
            "Zone Name",
            "Status",
            "EZKey Version Name",
            "Submission Time",
            "Is Canceled?",
            "Completion Time",
            "Number of files re-encrypted",
            "Number of failures",
            "Last File Checkpointed",
        ]
        .map(str::to_string)
        .to_vec(),
    ];
    for status in statuses {
        let time = |ms: i64| Moment::of_ms(u64::try_from(ms).unwrap_or(0)).to_the_minute();
        rows.push(vec![
            status.path.clone(),
            state_name(status.state).to_string(),
            status.key_version.clone(),
            time(status.submitted_ms),
            status.is_canceled.to_string(),
            status.completed_ms.map_or_else(|| "N/A".to_string(), time),
            status.reencrypted.to_string(),
            status.failures.to_string(),
            status.last_file.clone().unwrap_or_default(),
        ]);
    }
    output::print(format_args!("{}", output::table(&rows)));
    if statuses.iter().any(|status| status.failures > 0) {
        crate::say!(
            "The keys of some files could not be encrypted anew and are as they were: the \
             NameNode's log names them. Mend the cause and start again, or copy those files."
        );
    }
}

fn status_json(status: &ReencryptionStatus) -> Value {
    json!({
        "id": status.id, "path": status.path, "state": state_name(status.state),
        "key_version": status.key_version, "submitted_ms": status.submitted_ms,
        "canceled": status.is_canceled, "reencrypted": status.reencrypted,
        "failures": status.failures, "completed_ms": status.completed_ms,
        "last_file": status.last_file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::CipherSuite;

    fn parsed(text: &str) -> Result<Command> {
        parse(&text.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_hdfs_crypto_are_understood() {
        let (path, key) = ("/a".to_string(), "k".to_string());
        for (text, wanted) in [
            ("-createZone -keyName k -path /a", Command::CreateZone { path: path.clone(), key }),
            ("-listZones", Command::ListZones),
            ("-getZone -path /a", Command::GetZone { path: path.clone() }),
            (
                "-reencryptZone -start -path /a",
                Command::ReencryptZone { path: path.clone(), what: Reencryption::Start },
            ),
            (
                "-reencryptZone -path /a -cancel",
                Command::ReencryptZone { path, what: Reencryption::Cancel },
            ),
        ] {
            assert_eq!(parsed(text).unwrap(), wanted);
        }
        for wrong in [
            "-noSuch",
            "-createZone -path /a",
            "-createZone -keyName k -path",
            "-listZones -path /",
            "-reencryptZone -path /a",
            "-reencryptZone -start -cancel -path /a",
            "-getFileEncryptionInfo /a",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_files_encryption_is_shown_as_hadoop_shows_it() {
        let info = FileEncryption {
            suite: CipherSuite::AesCtr,
            protocol_version: 2,
            key_name: "k".to_string(),
            key_version: "k@0".to_string(),
            iv: vec![0, 255],
            encrypted_key: vec![1, 16],
        };
        assert_eq!(
            info_text(&info),
            "{cipherSuite: {name: AES/CTR/NoPadding, algorithmBlockSize: 16}, \
             cryptoProtocolVersion: CryptoProtocolVersion{description='Encryption zones', \
             version=2, unknownValue=null}, edek: 0110, iv: 00ff, keyName: k, \
             ezKeyVersionName: k@0}"
        );
    }
}
