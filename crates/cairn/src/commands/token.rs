//! `cairn token`: delegation tokens in files that Hadoop's programs read as well, in the place of `hdfs fetchdt`.
//!
//! Source: Hadoop 3.5.0 `DelegationTokenFetcher`, `SecurityUtil#buildTokenService`.

use crate::{Settings, config};
use anyhow::{Context, Result, bail};
use cairn_client::{ClientConfig, DelegationToken, FileSystem};
use cairn_conf::login::read_tokens;
use cairn_security::KerberosName;
use cairn_security::token::{DelegationTokenId, HDFS_DELEGATION_TOKEN};
use cairn_security::token_file::{TokenFile, TokenFormat};
use clap::Subcommand;
use serde_json::json;
use std::io::Write;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Flags of `cairn token`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Get a token of the NameNode and write it to a file, for HADOOP_TOKEN_FILE_LOCATION
    Get {
        /// Who may renew it (default: nobody but you)
        #[arg(long, value_name = "USER")]
        renewer: Option<String>,
        /// How the file is written; programs older than Hadoop 3 read only java
        #[arg(long, value_parser = ["java", "protobuf"], default_value = "java")]
        format: String,
        /// The file, which whoever can read it can use
        file: PathBuf,
    },
    /// Say which tokens a file holds, without a server
    Show {
        /// The file
        file: PathBuf,
    },
    /// Let the tokens of a file last longer, as their renewer
    Renew {
        /// The file
        file: PathBuf,
    },
    /// End the tokens of a file
    Cancel {
        /// The file
        file: PathBuf,
    },
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    if let TokenCommand::Show { file } = &args.command {
        show(&read_tokens(file)?, settings.json);
        return Ok(ExitCode::SUCCESS);
    }
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    match args.command {
        TokenCommand::Get { renewer, format, file } => {
            let format = match format.as_str() {
                "protobuf" => TokenFormat::Protobuf,
                _ => TokenFormat::Writable,
            };
            let renewer = renewer.unwrap_or_else(|| fs.config().user.clone());
            get(&fs, &renewer, format, &file).await?;
        }
        TokenCommand::Renew { file } => {
            for token in of_namenode(&fs, &file)? {
                let end = fs.renew_delegation_token(token.clone()).await?;
                crate::say!("Renewed {} until {}", describe(&token), moment(end));
            }
        }
        TokenCommand::Cancel { file } => {
            for token in of_namenode(&fs, &file)? {
                fs.cancel_delegation_token(token.clone()).await?;
                crate::say!("Cancelled {}", describe(&token));
            }
        }
        TokenCommand::Show { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn get(fs: &FileSystem, renewer: &str, format: TokenFormat, path: &Path) -> Result<()> {
    let got = fs.delegation_token(renewer).await?;
    let mut token = got.context("the NameNode issues no tokens: it believes who asks")?;
    token.service = service(fs.config())?;
    let text = describe(&token);
    let file = TokenFile { tokens: vec![(token.service.clone(), token)], secrets: Vec::new() };
    write(path, &file.encode(format))
        .with_context(|| format!("cannot write {}", path.display()))?;
    crate::say!("Fetched {text} into {}", path.display());
    Ok(())
}

/// What the NameNode's tokens are known by.
fn service(config: &ClientConfig) -> Result<String> {
    let authority = &config.namenode;
    if config.namenode_addresses.len() > 1 || !authority.contains(':') {
        return Ok(format!("ha-hdfs:{authority}"));
    }
    let address = authority.to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = address.with_context(|| format!("{authority} has no address"))?;
    Ok(address.to_string())
}

/// Writes a file that nobody else can read, whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The tokens of a file that NameNodes have issued.
fn of_namenode(fs: &FileSystem, file: &Path) -> Result<Vec<DelegationToken>> {
    let tokens = read_tokens(file)?.tokens.into_iter().map(|(_, token)| token);
    let own = service(fs.config())?;
    let is_own = |token: &DelegationToken| {
        token.kind == HDFS_DELEGATION_TOKEN
            && (token.service == own || token.service == fs.config().namenode)
    };
    let tokens: Vec<DelegationToken> = tokens.filter(is_own).collect();
    if tokens.is_empty() {
        bail!("{} has no token of {own}", file.display());
    }
    Ok(tokens)
}

fn show(file: &TokenFile, as_json: bool) {
    let list = file.tokens.iter().map(|(_, token)| token);
    if !as_json {
        list.for_each(|token| crate::say!("Token ({}) for {}", describe(token), token.service));
        return;
    }
    let list = list.map(|token| {
        let id = DelegationTokenId::decode(&token.identifier).ok();
        let id = id.filter(|_| token.kind == HDFS_DELEGATION_TOKEN);
        let id = id.map(|id| {
            json!({"owner": id.owner, "renewer": id.renewer, "real_user": id.real_user,
                   "issued_ms": id.issued_ms, "max_ms": id.max_ms, "number": id.sequence,
                   "tracking_id": id.name().tracking_id})
        });
        json!({"kind": token.kind, "service": token.service, "identifier": id})
    });
    crate::say!("{}", json!({"tokens": list.collect::<Vec<_>>()}));
}

fn describe(token: &DelegationToken) -> String {
    match DelegationTokenId::decode(&token.identifier) {
        Ok(id) if token.kind == HDFS_DELEGATION_TOKEN => {
            let owner = KerberosName::parse(&id.owner).map(|name| name.service);
            id.describe(owner.as_deref().unwrap_or(&id.owner))
        }
        _ => format!("{} token", token.kind),
    }
}

fn moment(ms: u64) -> String {
    cairn_net::date::Moment::of_ms(ms).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tokens_are_known_by_the_address_or_the_nameservice() {
        let config = |namenode: &str, addresses: &[&str]| ClientConfig {
            namenode: namenode.to_string(),
            namenode_addresses: addresses.iter().map(ToString::to_string).collect(),
            ..ClientConfig::default()
        };
        assert_eq!(service(&config("127.0.0.1:1", &["127.0.0.1:1"])).unwrap(), "127.0.0.1:1");
        assert_eq!(service(&config("ns", &["a:1", "b:1"])).unwrap(), "ha-hdfs:ns");
        assert!(service(&config("no such host.invalid:1", &[])).is_err());
    }

    #[test]
    fn nobody_else_reads_a_file_of_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for bytes in [&b"one"[..], b"two"] {
            write(&path, bytes).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
