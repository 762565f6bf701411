//! `cairn ec`: erasure coding policies, with the options and the answers of `hdfs ec`; and contiguous groups, with words
//! of Cairn's own.
//!
//! Source: Hadoop 3.5.0 `ECAdmin`.

mod convert;
mod groups;
mod unpack;

use crate::{Settings, config, output};
use anyhow::{Context, Result, bail};
use cairn_client::{ClientError, FileSystem, PolicyInfo};
use cairn_stripe::{CodecName, Policy, PolicyId, PolicyLayout, PolicyState, Schema};
use clap::Parser;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cairn ec -listPolicies
       cairn ec -addPolicies -policyFile FILE
       cairn ec -getPolicy -path PATH
       cairn ec -setPolicy -path PATH [-policy POLICY | -replicate]
       cairn ec -unsetPolicy -path PATH
       cairn ec -removePolicy -policy POLICY
       cairn ec -enablePolicy -policy POLICY
       cairn ec -disablePolicy -policy POLICY
       cairn ec -listCodecs
       cairn ec -verifyClusterSetup [-policy POLICY...]
       cairn ec convert (--policy POLICY | --replicate) [--dry-run] [--wait] PATH
       cairn ec unpack [--dry-run] [--wait] PATH
       cairn ec status
       cairn ec pause|resume form|drop|renew|convert...";

/// Flags of `cairn ec`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "cairn ec OPTION...", after_help = USAGE)]
pub struct Args {
    /// An option of `hdfs ec` with its values
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
}

/// Carries out one option; exits like `hdfs ec`: 1 for wrong words, 2 when the NameNode refuses.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    if let Some(word) = args.words.first().filter(|word| !word.starts_with('-')) {
        return match run_own(settings, word, &args.words).await {
            Ok(done) => done,
            Err(error) => refuse(&error),
        };
    }
    let (command, options) = match parse(&args.words) {
        Ok(parsed) => parsed,
        Err(error) => {
            crate::complain!("cairn ec: {error:#}\n{USAGE}");
            return Ok(ExitCode::from(1));
        }
    };
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let request = Request { fs, options, json: settings.json };
    match request.carry_out(command).await {
        Ok(code) => Ok(code),
        Err(error) => {
            let refused = error.downcast_ref::<ClientError>().map(output::first_line);
            crate::complain!("{}", refused.unwrap_or_else(|| format!("{error:#}")));
            Ok(ExitCode::from(2))
        }
    }
}

/// Carries out a command with words of Cairn's own, unless the words are wrong.
async fn run_own(
    settings: &Settings,
    word: &str,
    words: &[String],
) -> Result<Result<ExitCode>, clap::Error> {
    Ok(match word {
        "convert" => convert::run(settings, convert::Args::try_parse_from(words)?).await,
        "unpack" => unpack::run(settings, unpack::Args::try_parse_from(words)?).await,
        "status" => groups::status(settings, groups::StatusArgs::try_parse_from(words)?).await,
        "pause" | "resume" => {
            let args = groups::PauseArgs::try_parse_from(words)?;
            groups::pause(settings, args, word == "pause").await
        }
        _ => {
            crate::complain!("cairn ec: unknown option {word}\n{USAGE}");
            Ok(ExitCode::from(1))
        }
    })
}

/// Wrong words of a command with words of Cairn's own; or help, which was asked for.
fn refuse(error: &clap::Error) -> Result<ExitCode> {
    error.print()?;
    Ok(ExitCode::from(u8::from(error.use_stderr())))
}

/// Options by name, each with its values.
type Options = HashMap<String, Vec<String>>;

/// The command without its dash, and the options behind it.
fn parse(words: &[String]) -> Result<(&str, Options)> {
    let (command, rest) = words.split_first().context("an option is missing")?;
    let mut options = Options::new();
    let mut name: Option<String> = None;
    for word in rest {
        if let Some(option) = word.strip_prefix('-') {
            let option = option.trim_start_matches('-').to_string();
            options.entry(option.clone()).or_default();
            name = Some(option);
        } else if let Some(values) = name.as_ref().and_then(|name| options.get_mut(name)) {
            values.push(word.clone());
        } else {
            bail!("{command}: too many arguments");
        }
    }
    let allowed: &[&str] = match command.trim_start_matches('-') {
        "listPolicies" | "listCodecs" => &[],
        "addPolicies" => &["policyFile"],
        "getPolicy" | "unsetPolicy" => &["path"],
        "setPolicy" => &["path", "policy", "replicate"],
        "removePolicy" | "enablePolicy" | "disablePolicy" | "verifyClusterSetup" => &["policy"],
        _ => bail!("unknown option {command}"),
    };
    if let Some(unknown) = options.keys().find(|name| !allowed.contains(&name.as_str())) {
        bail!("{command}: unknown option -{unknown}");
    }
    Ok((command.trim_start_matches('-'), options))
}

struct Request {
    fs: FileSystem,
    options: Options,
    json: bool,
}

impl Request {
    async fn carry_out(&self, command: &str) -> Result<ExitCode> {
        match command {
            "listPolicies" => self.list_policies().await?,
            "addPolicies" => return self.add_policies().await,
            "getPolicy" => self.get_policy().await?,
            "setPolicy" => self.set_policy().await?,
            "unsetPolicy" => self.unset_policy().await?,
            "removePolicy" => self.change(command).await?,
            "enablePolicy" => self.change(command).await?,
            "disablePolicy" => self.change(command).await?,
            "listCodecs" => self.list_codecs().await?,
            _ => return self.verify().await,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The one value of an option that must be there.
    fn one(&self, name: &str) -> Result<&str> {
        match self.options.get(name).map(Vec::as_slice) {
            Some([value]) => Ok(value),
            _ => bail!("-{name} takes one value"),
        }
    }

    async fn list_policies(&self) -> Result<()> {
        let policies = self.fs.policies().await?;
        if self.json {
            crate::say!("{}", Value::from(policies.iter().map(policy_json).collect::<Vec<_>>()));
            return Ok(());
        }
        crate::say!("Erasure Coding Policies:");
        for info in &policies {
            crate::say!("{}", policy_text(info));
        }
        Ok(())
    }

    async fn add_policies(&self) -> Result<ExitCode> {
        let policies = read_policy_file(Path::new(self.one("policyFile")?))?;
        if policies.is_empty() {
            crate::say!("No EC policy parsed out from {}", self.one("policyFile")?);
        }
        let mut all = true;
        for result in self.fs.add_policies(&policies).await? {
            match &result.error {
                None => crate::say!("Add ErasureCodingPolicy {} succeed.", result.name),
                Some(error) => {
                    all = false;
                    crate::say!(
                        "Add ErasureCodingPolicy {} failed and error message is {error}",
                        result.name
                    );
                }
            }
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }

    async fn get_policy(&self) -> Result<()> {
        let path = self.one("path")?;
        let policy = self.fs.policy(path).await?;
        let name = policy.map(|policy| policy.name);
        if self.json {
            crate::say!("{}", json!({"path": path, "policy": name}));
        } else {
            let replicated = || format!("The erasure coding policy of {path} is unspecified");
            crate::say!("{}", name.unwrap_or_else(replicated));
        }
        Ok(())
    }

    async fn set_policy(&self) -> Result<()> {
        let path = self.one("path")?;
        let replicate = self.options.contains_key("replicate");
        let named = self.options.contains_key("policy");
        if replicate && named {
            bail!("-replicate and -policy cannot be given together");
        }
        let name = match (replicate, named) {
            (true, _) => Some("REPLICATION"),
            (false, true) => Some(self.one("policy")?),
            (false, false) => None,
        };
        self.fs.set_policy(path, name).await?;
        crate::say!("Set {} erasure coding policy on {path}", name.unwrap_or("default"));
        self.warn_if_filled(path, "setting").await
    }

    async fn unset_policy(&self) -> Result<()> {
        let path = self.one("path")?;
        self.fs.unset_policy(path).await?;
        crate::say!("Unset erasure coding policy from {path}");
        self.warn_if_filled(path, "unsetting").await
    }

    async fn warn_if_filled(&self, path: &str, doing: &str) -> Result<()> {
        if self.fs.list(path).next().await?.is_some() {
            crate::say!(
                "Warning: {doing} a policy does not convert the files that {path} already holds"
            );
        }
        Ok(())
    }

    async fn change(&self, command: &str) -> Result<()> {
        let name = self.one("policy")?;
        let done = match command {
            "removePolicy" => {
                self.fs.remove_policy(name).await?;
                "removed"
            }
            "enablePolicy" => {
                self.fs.enable_policy(name).await?;
                "enabled"
            }
            _ => {
                self.fs.disable_policy(name).await?;
                "disabled"
            }
        };
        crate::say!("Erasure coding policy {name} is {done}");
        if done == "enabled" {
            let check = self.fs.check_topology(&[name.to_string()]).await?;
            if !check.supported {
                crate::complain!("Warning: {}", check.message);
            }
        }
        Ok(())
    }

    async fn list_codecs(&self) -> Result<()> {
        let codecs = self.fs.codecs().await?;
        if self.json {
            let entries = codecs.into_iter().map(|(codec, coders)| (codec, Value::from(coders)));
            crate::say!("{}", Value::Object(entries.collect()));
            return Ok(());
        }
        crate::say!("Erasure Coding Codecs: Codec [Coder List]");
        for (codec, coders) in codecs {
            crate::say!("\t{} [{}]", codec.to_uppercase(), coders.to_uppercase());
        }
        Ok(())
    }

    async fn verify(&self) -> Result<ExitCode> {
        let names = self.options.get("policy").cloned().unwrap_or_default();
        let check = self.fs.check_topology(&names).await?;
        if self.json {
            crate::say!("{}", json!({"supported": check.supported, "message": check.message}));
        } else {
            crate::say!("{}", check.message);
        }
        Ok(if check.supported { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }
}

fn state_name(state: PolicyState) -> &'static str {
    match state {
        PolicyState::Disabled => "DISABLED",
        PolicyState::Enabled => "ENABLED",
        PolicyState::Removed => "REMOVED",
    }
}

fn policy_json(info: &PolicyInfo) -> Value {
    let Policy { id, name, schema, cell_len, layout } = &info.policy;
    let layout = match layout {
        PolicyLayout::Striped => "striped",
        PolicyLayout::Contiguous => "contiguous",
    };
    json!({
        "id": id.0, "name": name, "codec": schema.codec.as_str(), "data_units": schema.k,
        "parity_units": schema.m, "cell_size": cell_len, "layout": layout,
        "state": state_name(info.state),
    })
}

/// One policy in the form in which `hdfs ec -listPolicies` shows it, for scripts that read that.
fn policy_text(info: &PolicyInfo) -> String {
    format!("{}, State={}", info.policy, state_name(info.state))
}

/// Policies of a file in Hadoop's `user_ec_policies.xml` form.
///
/// Source: Hadoop 3.5.0 `ECPolicyLoader`.
fn read_policy_file(path: &Path) -> Result<Vec<Policy>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse_policies(&text).with_context(|| format!("{} is not valid", path.display()))
}

fn parse_policies(text: &str) -> Result<Vec<Policy>> {
    let mut reader = Reader::from_str(text);
    let mut schemas: HashMap<String, HashMap<String, String>> = HashMap::new();
    let mut policies = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let (mut schema_id, mut values, mut word) = (String::new(), HashMap::new(), String::new());
    loop {
        match reader.read_event()? {
            Event::Start(tag) => {
                let name = String::from_utf8_lossy(tag.local_name().as_ref()).to_lowercase();
                if name == "schema" && open.last().is_some_and(|last| last == "schemas") {
                    let id = tag.try_get_attribute("id")?.context("a schema has no id")?;
                    schema_id = String::from_utf8_lossy(&id.value).into_owned();
                }
                if name == "schema" && open.last().is_some_and(|last| last == "schemas")
                    || name == "policy"
                {
                    values = HashMap::new();
                }
                open.push(name);
                word.clear();
            }
            Event::Text(piece) => word.push_str(&piece.decode()?),
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                match (open.last().map(String::as_str), name.as_str()) {
                    (Some("schemas"), "schema") => {
                        schemas.insert(std::mem::take(&mut schema_id), std::mem::take(&mut values));
                    }
                    (_, "policy") => policies.push(policy_of(&schemas, &values)?),
                    _ => {
                        values.insert(name, word.trim().to_string());
                    }
                }
                word.clear();
            }
            Event::Eof if open.is_empty() => return Ok(policies),
            Event::Eof => bail!("it ends too early"),
            _ => {}
        }
    }
}

fn policy_of(
    schemas: &HashMap<String, HashMap<String, String>>,
    policy: &HashMap<String, String>,
) -> Result<Policy> {
    let id = policy.get("schema").context("a policy names no schema")?;
    let schema = schemas.get(id).with_context(|| format!("there is no schema {id}"))?;
    let value = |from: &HashMap<String, String>, key: &str| -> Result<String> {
        from.get(key).cloned().with_context(|| format!("{key} is missing"))
    };
    let codec = value(schema, "codec")?;
    let schema = Schema {
        codec: CodecName::parse(&codec).with_context(|| format!("there is no codec {codec}"))?,
        k: value(schema, "k")?.parse().context("k is no number")?,
        m: value(schema, "m")?.parse().context("m is no number")?,
    };
    let cell_len = value(policy, "cellsize")?.parse().context("cellsize is no number")?;
    Ok(Policy::new(PolicyId::FIRST_USER_DEFINED, schema, cell_len)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_hdfs_ec_are_understood() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        let set = words("-setPolicy -path /a -policy RS-6-3-1024k");
        let (command, options) = parse(&set).unwrap();
        assert_eq!((command, options["path"][0].as_str()), ("setPolicy", "/a"));
        assert_eq!(options["policy"], ["RS-6-3-1024k"]);
        for wrong in ["-noSuch", "-setPolicy x", "-listPolicies -path /", "-getPolicy -what /"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn policy_files_of_hadoop_are_read() {
        let text = "<configuration><layoutversion>1</layoutversion><schemas>\
            <schema id=\"a\"><codec>rs</codec><k>4</k><m>2</m><options></options></schema></schemas>\
            <policies><policy><schema>a</schema><cellsize>131072</cellsize></policy></policies>\
            </configuration>";
        let policies = parse_policies(text).unwrap();
        assert_eq!(policies[0].name, "RS-4-2-128k");
        assert!(parse_policies(&text.replace("<k>4</k>", "")).is_err());
        assert!(parse_policies(&text.replace(">a<", ">b<")).is_err());
    }
}
