//! Fills a NameNode's directory with files of one block each, by the log and the store as a NameNode would, only
//! without clients: so that one with ten million files can be measured within an hour.
//!
//! Each file is a `create`, an `addBlock` and a `complete`, in folders of 1,000 as `nameload` has them
//! (`/load/r<round>/d<folder>/f<number>`). Blocks have the ids and stamps that a new file system gives out, in order,
//! and 1 MiB a replica or unit, which is what `nameload hold` tells of. Nothing is synced until the end. The same for
//! Hadoop is `FillNamespace` in `interop/hadoop`.
//!
//! Usage: `fill DIR COPIES|POLICY ROUND FILES [ROUND FILES]...`, such as `fill /data/name RS-6-3-1024k 0 10000000`;
//! with 0 copies files are empty. Prints one line of JSON.

use cairn_master::Submission;
use cairn_namenode::journal::{Durability, Namesystem, NamesystemOptions};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::ec::{EnableEcPolicy, SetEcPolicy};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::{BlockRef, Caller, Command, Outcome};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tikv_jemallocator::Jemalloc;

/// As the NameNode has it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Files of a folder.
const FOLDER: u64 = 1000;
/// Files that are made at the same time.
const WRITERS: u64 = 1024;
/// Bytes of a replica or unit.
const UNIT_LEN: u64 = 1 << 20;
/// Entries between checkpoints: few pages of the store are then written again and again.
const CHECKPOINT_ENTRIES: u64 = 1 << 20;

/// What files are made of.
#[derive(Clone)]
struct Shape {
    policy: Option<String>,
    copies: u16,
    /// Files without a block.
    is_empty: bool,
    /// Data units of a group; 1 for replicas.
    data_units: u64,
    /// Replicas or units with a CRC on record.
    crcs: usize,
}

impl Shape {
    fn parse(word: &str) -> Done<Shape> {
        if let Ok(copies) = word.parse() {
            let is_empty = copies == 0;
            let copies = if is_empty { 3 } else { copies };
            return Ok(Shape { policy: None, copies, is_empty, data_units: 1, crcs: 1 });
        }
        let mut numbers = word.split('-').filter_map(|part| part.parse::<u64>().ok());
        let (Some(k), Some(m)) = (numbers.next(), numbers.next()) else {
            return Err(format!("{word} is neither a number nor a policy").into());
        };
        let policy = Some(word.to_string());
        let crcs = (k + m) as usize;
        Ok(Shape { policy, copies: 3, is_empty: false, data_units: k, crcs })
    }
}

async fn submit(ns: &Namesystem, command: impl Into<Command>) -> Done<Outcome> {
    let caller = Caller {
        user: "load".to_string(),
        groups: vec!["load".to_string()],
        superuser: true,
        ..Caller::default()
    };
    Ok(ns.submit(Submission::of(caller, None, command)).await?)
}

async fn make(ns: &Namesystem, shape: &Shape, base: &str, number: u64) -> Done {
    let path = format!("{base}/d{}/f{number}", number / FOLDER);
    let holder = format!("NONMAPREDUCE_{}", number % WRITERS);
    let created = submit(
        ns,
        Create {
            path: path.clone(),
            mode: 0o644.into(),
            holder: holder.clone(),
            client_machine: "127.0.0.1".to_string(),
            create: true,
            overwrite: false,
            should_replicate: false,
            create_parent: true,
            replication: shape.copies,
            block_size: 128 << 20,
            ec_policy: None,
            storage_policy: None,
        },
    );
    let Outcome::Created { status, .. } = created.await? else { return Err("no file".into()) };
    let file = Some(status.inode.id);
    let mut complete = Complete {
        path: path.clone(),
        file,
        holder: holder.clone(),
        last: None,
        last_crcs: Vec::new(),
        min_replicated: true,
    };
    if !shape.is_empty {
        let added = submit(
            ns,
            AddBlock {
                path,
                file,
                holder,
                previous: None,
                previous_crcs: Vec::new(),
                previous_min_replicated: true,
            },
        );
        let Outcome::BlockAdded { block, .. } = added.await? else { return Err("no block".into()) };
        complete.last = Some(BlockRef { len: shape.data_units * UNIT_LEN, ..block.reference() });
        // No two bytes strings have a CRC in common, here neither.
        complete.last_crcs = (0..shape.crcs)
            .map(|unit| Some((number as u32).wrapping_mul(0x9e37_79b9) ^ unit as u32))
            .collect();
    }
    submit(ns, complete).await?;
    Ok(())
}

async fn mkdir(ns: &Namesystem, path: String) -> Done {
    submit(ns, Mkdirs { path, mode: 0o777.into(), create_parent: true }).await?;
    Ok(())
}

async fn fill(ns: &Arc<Namesystem>, base: String, files: u64, shape: &Shape) -> Done {
    mkdir(ns, "/load".to_string()).await?;
    mkdir(ns, base.clone()).await?;
    if let Some(name) = &shape.policy {
        submit(ns, EnableEcPolicy { name: name.clone() }).await?;
        submit(ns, SetEcPolicy { path: base.clone(), policy: Some(name.clone()) }).await?;
    }
    for folder in 0..files.div_ceil(FOLDER) {
        mkdir(ns, format!("{base}/d{folder}")).await?;
    }
    let next = Arc::new(AtomicU64::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS.min(files) {
        let (ns, next, shape) = (Arc::clone(ns), Arc::clone(&next), shape.clone());
        let base = base.clone();
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= files {
                    return Done::Ok(());
                }
                make(&ns, &shape, &base, number).await?;
                if number % 1_000_000 == 999_999 {
                    eprintln!("{base}: {} files", number + 1);
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok(())
}

fn main() -> Done {
    let args: Vec<String> = std::env::args().collect();
    let usage = "usage: fill DIR COPIES|POLICY ROUND FILES [ROUND FILES]...";
    let [_, dir, shape, rounds @ ..] = args.as_slice() else { return Err(usage.into()) };
    let (rounds, rest) = rounds.as_chunks::<2>();
    if rounds.is_empty() || !rest.is_empty() {
        return Err(usage.into());
    }
    let shape = Shape::parse(shape)?;
    let options = NamesystemOptions {
        durability: Durability::PageCache,
        cache_len: 1 << 30,
        checkpoint_entries: CHECKPOINT_ENTRIES,
        superuser: std::env::var("USER").unwrap_or_else(|_| "root".to_string()),
        ..NamesystemOptions::default()
    };
    let begin = Instant::now();
    let ns = Namesystem::open(Path::new(dir), options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut made = 0;
    for [round, files] in rounds {
        let files = files.parse()?;
        runtime.block_on(fill(&ns, format!("/load/r{round}"), files, &shape))?;
        made += files;
    }
    ns.close();
    println!("{{\"files\":{made},\"seconds\":{:.1}}}", begin.elapsed().as_secs_f64());
    Ok(())
}
