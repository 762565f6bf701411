//! What every command takes: where the configuration is, and words that change it.

use crate::config;
use crate::logging::Format;
use anyhow::Result;
use std::path::PathBuf;

/// What help calls them together, apart from what a command has of its own.
const ALL: &str = "Options of all commands";

/// What every command takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Folder with core-site.xml and hdfs-site.xml (default: HADOOP_CONF_DIR)
    #[arg(long, global = true, help_heading = ALL, value_name = "DIR")]
    pub conf: Option<PathBuf>,
    /// A configuration key; may be repeated
    #[arg(short = 'D', global = true, help_heading = ALL, value_name = "KEY=VALUE")]
    pub define: Vec<String>,
    /// The file system, hdfs://HOST:PORT (default: fs.defaultFS)
    #[arg(long, global = true, help_heading = ALL, value_name = "URI")]
    pub fs: Option<String>,
    /// Answer with JSON, for programs
    #[arg(long, global = true, help_heading = ALL)]
    pub json: bool,
    /// What to log on standard error: error, warn, info, debug or trace (default: warn, and error for quickstart)
    #[arg(long, global = true, help_heading = ALL, value_name = "LEVEL")]
    pub log: Option<tracing::Level>,
    /// How to log: text for people, json for programs, an object a line
    #[arg(
        long,
        global = true,
        help_heading = ALL,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true
    )]
    pub log_format: Format,
}

impl Settings {
    /// Reads everything again, for a role that runs: its settings, and the text of each property.
    pub fn reload<C>(
        &self,
        read: impl Fn(&config::Configuration) -> Result<C>,
    ) -> Result<cairn_operate::reconfiguration::Read<C>, String> {
        let read_all = || {
            let conf = self.configuration()?;
            let settings = read(&conf)?;
            let text = |(key, _): (&str, &str)| Some((key.to_string(), conf.get(key)?));
            Ok((settings, conf.iter().filter_map(text).collect()))
        };
        read_all().map_err(|error: anyhow::Error| format!("{error:#}"))
    }

    /// The keys of the folder, the environment and the `-D` words, in that order.
    pub fn configuration(&self) -> Result<config::Configuration> {
        let mut conf = config::Configuration::default();
        if let Some(folder) = self.conf.clone().or_else(config::folder_from_environment) {
            conf.load_folder(&folder)?;
        }
        conf.set_words(&self.define)?;
        if let Some(fs) = &self.fs {
            conf.set("fs.defaultFS", fs);
        }
        Ok(conf)
    }
}
