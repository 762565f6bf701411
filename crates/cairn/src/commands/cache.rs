//! `cairn cache`: what DataNodes keep in memory, by pools and directives.
//!
//! Source: Hadoop 3.5.0 `CacheAdmin`.

use super::fs::{absolute, permission_text};
use crate::{Settings, config, output};
use anyhow::{Context, Result};
use cairn_client::{CacheDirective, CacheExpiry, CachePool, CacheStats, FileSystem};
use cairn_conf::value;
use cairn_net::date::Moment;
use clap::Subcommand;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// What stands for never: Hadoop's longest time.
///
/// Source: Hadoop 3.5.0 `CacheDirectiveInfo.Expiration#MAX_RELATIVE_EXPIRY_MS`.
const NEVER_MS: i64 = i64::MAX / 4;

/// Flags of `cairn cache`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: CacheCommand,
}

/// What a pool is to be like.
#[derive(Debug, clap::Args)]
struct PoolWords {
    /// The pool's name
    name: String,
    /// Its owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Its group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Its mode, octal: w lets others make directives in it
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Most bytes that its directives may have in memory, or unlimited
    #[arg(long, value_name = "BYTES")]
    limit: Option<String>,
    /// Copies in memory where a directive names no number
    #[arg(long, value_name = "COPIES")]
    default_replication: Option<u16>,
    /// The longest that a directive may last, such as 30m, 4h, 2d, or never
    #[arg(long, value_name = "TIME")]
    max_ttl: Option<String>,
}

impl PoolWords {
    fn pool(self) -> Result<CachePool> {
        let mode = self.mode.as_deref().map(value::mode).transpose()?;
        let limit = |text: &str| match text {
            "unlimited" => Ok(u64::MAX),
            text => value::bytes(text),
        };
        let max_ttl_ms = self.max_ttl.as_deref().map(time_ms).transpose()?;
        Ok(CachePool {
            name: self.name,
            owner: self.owner,
            group: self.group,
            mode: mode.map(|mode| (mode & 0o777) as u16),
            limit: self.limit.as_deref().map(limit).transpose()?,
            max_ttl_ms: max_ttl_ms.map(|ms| ms as u64),
            default_replication: self.default_replication,
        })
    }
}

/// What a directive is to be like.
#[derive(Debug, clap::Args)]
struct DirectiveWords {
    /// Copies in memory
    #[arg(long, value_name = "COPIES")]
    replication: Option<u16>,
    /// How long it lasts, such as 30m, 4h, 2d, or never
    #[arg(long, value_name = "TIME")]
    ttl: Option<String>,
    /// Also beyond the limit of its pool
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// Have a file, or the files of a directory, kept in memory
    #[command(alias = "addDirective")]
    AddDirective {
        /// The file or directory
        #[arg(long)]
        path: String,
        /// The pool
        #[arg(long)]
        pool: String,
        #[command(flatten)]
        words: DirectiveWords,
    },
    /// Change a directive
    #[command(alias = "modifyDirective")]
    ModifyDirective {
        /// Its number
        #[arg(long)]
        id: u64,
        /// Another path
        #[arg(long)]
        path: Option<String>,
        /// Another pool
        #[arg(long)]
        pool: Option<String>,
        #[command(flatten)]
        words: DirectiveWords,
    },
    /// List directives
    #[command(alias = "listDirectives")]
    ListDirectives {
        /// Only for this path
        #[arg(long)]
        path: Option<String>,
        /// Only of this pool
        #[arg(long)]
        pool: Option<String>,
        /// Only that with this number
        #[arg(long)]
        id: Option<u64>,
        /// What each asks for and has, too
        #[arg(long)]
        stats: bool,
    },
    /// Remove directives by their numbers
    #[command(alias = "removeDirective")]
    RemoveDirective {
        /// The numbers
        #[arg(required = true)]
        ids: Vec<u64>,
    },
    /// Remove all directives for a path
    #[command(alias = "removeDirectives")]
    RemoveDirectives {
        /// The path
        #[arg(long)]
        path: String,
    },
    /// Make a pool
    #[command(alias = "addPool")]
    AddPool(PoolWords),
    /// Change a pool
    #[command(alias = "modifyPool")]
    ModifyPool(PoolWords),
    /// Remove a pool and its directives
    #[command(alias = "removePool")]
    RemovePool {
        /// Its name
        name: String,
    },
    /// List pools
    #[command(alias = "listPools")]
    ListPools {
        /// What each asks for and has, too
        #[arg(long)]
        stats: bool,
        /// Only this one
        name: Option<String>,
    },
}

/// Milliseconds of a time, or of never.
fn time_ms(text: &str) -> Result<i64> {
    if text == "never" {
        return Ok(NEVER_MS);
    }
    let time = value::duration(text, Duration::from_secs(1));
    let time = time.with_context(|| format!("'{text}' is no time such as 30m"))?;
    Ok(i64::try_from(time.as_millis()).unwrap_or(NEVER_MS))
}

/// Carries out one sub-command.
pub async fn run(settings: &Settings, args: Args) -> Result<ExitCode> {
    let fs = FileSystem::connect(config::client::read(&settings.configuration()?)?).await?;
    let at = |path: String| absolute(&path, fs.config());
    let expiry = |ttl: Option<String>| -> Result<Option<CacheExpiry>> {
        Ok(ttl.as_deref().map(time_ms).transpose()?.map(CacheExpiry::In))
    };
    match args.command {
        CacheCommand::AddDirective { path, pool, words } => {
            let info = CacheDirective {
                id: None,
                path: Some(at(path)?),
                replication: words.replication,
                pool: Some(pool),
                expiry: expiry(words.ttl)?,
            };
            let id = fs.add_cache_directive(&info, words.force).await?;
            if settings.json {
                crate::say!("{}", json!({"id": id}));
            } else {
                crate::say!("Added cache directive {id}");
            }
        }
        CacheCommand::ModifyDirective { id, path, pool, words } => {
            let info = CacheDirective {
                id: Some(id),
                path: path.map(at).transpose()?,
                replication: words.replication,
                pool,
                expiry: expiry(words.ttl)?,
            };
            fs.modify_cache_directive(&info, words.force).await?;
            crate::say!("Modified cache directive {id}");
        }
        CacheCommand::ListDirectives { path, pool, id, stats } => {
            let path = path.map(at).transpose()?;
            let filter = CacheDirective { id, path, pool, ..CacheDirective::default() };
            list_directives(&fs.cache_directives(&filter).await?, stats, settings.json);
        }
        CacheCommand::RemoveDirective { ids } => {
            for id in ids {
                fs.remove_cache_directive(id).await?;
                crate::say!("Removed cached directive {id}");
            }
        }
        CacheCommand::RemoveDirectives { path } => {
            let filter = CacheDirective { path: Some(at(path)?), ..CacheDirective::default() };
            for (info, _) in fs.cache_directives(&filter).await? {
                let id = info.id.unwrap_or_default();
                fs.remove_cache_directive(id).await?;
                crate::say!("Removed cache directive {id}");
            }
        }
        CacheCommand::AddPool(words) => {
            let pool = words.pool()?;
            fs.add_cache_pool(&pool).await?;
            crate::say!("Successfully added cache pool {}.", pool.name);
        }
        CacheCommand::ModifyPool(words) => {
            let pool = words.pool()?;
            fs.modify_cache_pool(&pool).await?;
            crate::say!("Successfully modified cache pool {}.", pool.name);
        }
        CacheCommand::RemovePool { name } => {
            fs.remove_cache_pool(&name).await?;
            crate::say!("Successfully removed cache pool {name}.");
        }
        CacheCommand::ListPools { stats, name } => {
            let mut pools = fs.cache_pools().await?;
            pools.retain(|(pool, _)| name.as_ref().is_none_or(|name| *name == pool.name));
            list_pools(&pools, stats, settings.json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn stats_json(stats: &CacheStats) -> Value {
    json!({
        "bytes_needed": stats.bytes_needed, "bytes_cached": stats.bytes_cached,
        "bytes_over_limit": stats.bytes_over_limit, "files_needed": stats.files_needed,
        "files_cached": stats.files_cached,
    })
}

fn list_pools(pools: &[(CachePool, CacheStats)], with_stats: bool, json: bool) {
    if json {
        for (pool, stats) in pools {
            crate::say!(
                "{}",
                json!({"name": pool.name, "owner": pool.owner, "group": pool.group,
                       "mode": pool.mode.map(|mode| format!("{mode:04o}")),
                       "limit": pool.limit.filter(|limit| *limit != u64::MAX),
                       "max_ttl_ms": pool.max_ttl_ms.filter(|ms| *ms < NEVER_MS as u64),
                       "default_replication": pool.default_replication,
                       "stats": stats_json(stats)})
            );
        }
        return;
    }
    let mut head = vec!["NAME", "OWNER", "GROUP", "MODE", "LIMIT", "MAXTTL", "DEFAULT_REPLICATION"];
    if with_stats {
        head.extend(["NEEDED", "CACHED", "OVER_LIMIT", "FILES_NEEDED", "FILES_CACHED"]);
    }
    let mut rows = vec![head.into_iter().map(str::to_string).collect::<Vec<_>>()];
    for (pool, stats) in pools {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let limit = pool.limit.map_or(String::new(), |limit| match limit {
            u64::MAX => "unlimited".to_string(),
            limit => output::size(limit),
        });
        let ttl = pool.max_ttl_ms.map_or(String::new(), |ms| match ms {
            ms if ms >= NEVER_MS as u64 => "never".to_string(),
            ms => format!("{} s", ms / 1000),
        });
        let mut row = vec![
            pool.name.clone(),
            text(&pool.owner),
            text(&pool.group),
            pool.mode.map_or(String::new(), permission_text),
            limit,
            ttl,
            pool.default_replication.map_or(String::new(), |copies| copies.to_string()),
        ];
        if with_stats {
            row.extend(stats_row(stats));
        }
        rows.push(row);
    }
    output::print(format_args!("{}", output::table(&rows)));
}

fn stats_row(stats: &CacheStats) -> [String; 5] {
    [
        output::size(stats.bytes_needed),
        output::size(stats.bytes_cached),
        output::size(stats.bytes_over_limit),
        stats.files_needed.to_string(),
        stats.files_cached.to_string(),
    ]
}

fn list_directives(directives: &[(CacheDirective, CacheStats)], with_stats: bool, json: bool) {
    if json {
        for (info, stats) in directives {
            let ends_ms = match info.expiry {
                Some(CacheExpiry::At(ms)) if ms < NEVER_MS => Some(ms),
                _ => None,
            };
            crate::say!(
                "{}",
                json!({"id": info.id, "path": info.path, "pool": info.pool, "ends_ms": ends_ms,
                       "replication": info.replication, "stats": stats_json(stats)})
            );
        }
        return;
    }
    let mut head = vec!["ID", "POOL", "REPL", "EXPIRY", "PATH"];
    if with_stats {
        head.extend(["NEEDED", "CACHED", "OVER_LIMIT", "FILES_NEEDED", "FILES_CACHED"]);
    }
    let mut rows = vec![head.into_iter().map(str::to_string).collect::<Vec<_>>()];
    for (info, stats) in directives {
        let ends = match info.expiry {
            Some(CacheExpiry::At(ms)) if ms < NEVER_MS => {
                Moment::of_ms(u64::try_from(ms).unwrap_or(0)).to_the_minute()
            }
            _ => "never".to_string(),
        };
        let mut row = vec![
            info.id.unwrap_or_default().to_string(),
            info.pool.clone().unwrap_or_default(),
            info.replication.map_or(String::new(), |copies| copies.to_string()),
            ends,
            info.path.clone().unwrap_or_default(),
        ];
        if with_stats {
            row.extend(stats_row(stats));
        }
        rows.push(row);
    }
    output::print(format_args!("{}", output::table(&rows)));
}
