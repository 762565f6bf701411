//! Cache pools and directives.

use crate::support::{Fs, root, said, user};
use cairn_namespace::cache::{self, CacheDirective, TTL_MAX_MS, UNLIMITED};
use cairn_namespace::command::CallId;
use cairn_namespace::ops::cache_directive::{
    AddCacheDirective, CacheDirectiveSpec, Expiry, ModifyCacheDirective, RemoveCacheDirective,
};
use cairn_namespace::ops::cache_pool::{
    AddCachePool, CachePoolSpec, ModifyCachePool, RemoveCachePool,
};
use cairn_namespace::{Command, Outcome};

fn pool(name: &str) -> CachePoolSpec {
    CachePoolSpec { name: name.into(), ..CachePoolSpec::default() }
}

fn on(path: &str, pool: &str) -> CacheDirectiveSpec {
    let (path, pool) = (Some(path.into()), Some(pool.into()));
    CacheDirectiveSpec { path, pool, ..CacheDirectiveSpec::default() }
}

fn add(directive: CacheDirectiveSpec) -> AddCacheDirective {
    AddCacheDirective { directive }
}

fn get(fs: &Fs, id: u64) -> CacheDirective {
    cache::directive(&fs.store, id).unwrap().unwrap()
}

/// A refusal with `InvalidRequestException`.
fn invalid(fs: &mut Fs, command: impl Into<Command>) -> String {
    let (class, text) = said(&fs.err(command));
    assert_eq!(class, "InvalidRequestException", "{text}");
    text
}

#[test]
fn pools_have_hadoops_defaults_and_refusals() {
    let mut fs = Fs::new();
    fs.ok(AddCachePool { pool: pool("p") });
    let made = cache::pool(&fs.store, "p").unwrap().unwrap();
    assert_eq!(
        (made.owner.as_str(), made.group.as_str(), made.mode),
        ("root", "supergroup", 0o755)
    );
    assert_eq!((made.limit, made.replication, made.ttl_max_ms), (UNLIMITED, 1, TTL_MAX_MS));
    let again = invalid(&mut fs, AddCachePool { pool: pool("p") });
    assert_eq!(again, "Cache pool p already exists.");
    for (spec, text) in [
        (CachePoolSpec { limit: Some(-1), ..pool("q") }, "Limit is negative."),
        (CachePoolSpec { replication: Some(-1), ..pool("q") }, "Default Replication is negative"),
        (CachePoolSpec { ttl_max_ms: Some(-1), ..pool("q") }, "Max relative expiry is negative."),
        (
            CachePoolSpec { ttl_max_ms: Some(i64::MAX), ..pool("q") },
            "Max relative expiry is too big.",
        ),
    ] {
        assert_eq!(invalid(&mut fs, AddCachePool { pool: spec }), text);
    }
    let unnamed = said(&fs.err(AddCachePool { pool: pool("") }));
    assert_eq!(unnamed, ("IOException".into(), "invalid empty cache pool name".into()));
    let refused = fs.run(user("bob"), AddCachePool { pool: pool("q") }).unwrap_err();
    assert_eq!(said(&refused).0, "AccessControlException");

    let change = CachePoolSpec { owner: Some("bob".into()), limit: Some(5), ..pool("p") };
    fs.ok(ModifyCachePool { pool: change });
    let changed = cache::pool(&fs.store, "p").unwrap().unwrap();
    assert_eq!((changed.owner.as_str(), changed.limit, changed.mode), ("bob", 5, 0o755));
    let missing = invalid(&mut fs, ModifyCachePool { pool: pool("q") });
    assert_eq!(missing, "Cache pool q does not exist.");
    let missing = invalid(&mut fs, RemoveCachePool { name: "q".into() });
    assert_eq!(missing, "Cannot remove non-existent cache pool q");
    let names = |fs: &Fs, after: &str| -> Vec<String> {
        let pools = cache::pools_after(&fs.store, after, 10).unwrap();
        pools.into_iter().map(|pool| pool.name).collect()
    };
    fs.ok(AddCachePool { pool: pool("pp") });
    assert_eq!(names(&fs, ""), ["p", "pp"]);
    assert_eq!(names(&fs, "p"), ["pp"]);
}

#[test]
fn directives_are_checked_in_hadoops_order() {
    let mut fs = Fs::new();
    fs.ok(AddCachePool { pool: CachePoolSpec { ttl_max_ms: Some(60_000), ..pool("p") } });
    let nothing = CacheDirectiveSpec::default();
    assert_eq!(invalid(&mut fs, add(nothing.clone())), "No pool specified.");
    assert_eq!(invalid(&mut fs, add(on("/f", ""))), "Invalid empty pool name.");
    assert_eq!(invalid(&mut fs, add(on("/f", "q"))), "Unknown pool q");
    let pathless = CacheDirectiveSpec { path: None, ..on("/f", "p") };
    assert_eq!(invalid(&mut fs, add(pathless)), "No path specified.");
    assert_eq!(invalid(&mut fs, add(on("f", "p"))), "Invalid path 'f'.");
    let none = CacheDirectiveSpec { replication: Some(0), ..on("/f", "p") };
    assert_eq!(invalid(&mut fs, add(none)), "Invalid replication factor 0 <= 0");
    let until = |expiry| CacheDirectiveSpec { expiry: Some(expiry), ..on("/f", "p") };
    for (expiry, text) in [
        (Expiry::After { ms: -1 }, "Cannot set a negative expiration: -1"),
        (
            Expiry::After { ms: 60_001 },
            "Expiration 000:00:01:00.001 exceeds the max relative expiration time of 60000 ms.",
        ),
        (
            Expiry::At { ms: i64::MAX - 1 },
            "Expiration 292278994-08-17T07:12:55+0000 is too far in the future!",
        ),
    ] {
        assert_eq!(invalid(&mut fs, add(until(expiry))), text);
    }
    // What was refused has taken no number.
    assert_eq!(fs.ok(add(on("/f", "p"))), Outcome::CacheDirective(1));
    assert_eq!(get(&fs, 1).expires_ms, fs.now_ms + 60_000);
    assert_eq!(fs.ok(add(until(Expiry::After { ms: 5 }))), Outcome::CacheDirective(2));
    assert_eq!(get(&fs, 2).expires_ms, fs.now_ms + 5);
    assert!(get(&fs, 2).has_expired(fs.now_ms + 5) && !get(&fs, 2).has_expired(fs.now_ms));
}

#[test]
fn a_pool_takes_what_its_limit_leaves() {
    let mut fs = Fs::new();
    fs.mkdirs("/d/deeper");
    fs.write("/d/a", &[100]);
    fs.write("/d/b", &[50]);
    fs.write("/d/deeper/c", &[1000]);
    fs.ok(AddCachePool { pool: CachePoolSpec { limit: Some(400), ..pool("p") } });
    fs.ok(add(on("/d", "p")));
    let twice = CacheDirectiveSpec { replication: Some(3), ..on("/d/a", "p") };
    assert_eq!(
        invalid(&mut fs, add(twice.clone())),
        "Caching path /d/a of size 100 bytes at replication 3 would exceed pool p's remaining \
         capacity of 250 bytes."
    );
    fs.ok(add(CacheDirectiveSpec { force: true, ..twice.clone() }));
    assert_eq!(
        invalid(&mut fs, add(on("/d/b", "p"))),
        "Caching path /d/b of size 50 bytes at replication 1 would exceed pool p's remaining \
         capacity of -50 bytes."
    );
    // Nothing there takes nothing; another pool is asked when a directive moves there.
    fs.ok(AddCachePool { pool: CachePoolSpec { limit: Some(10), ..pool("small") } });
    let Outcome::CacheDirective(id) = fs.ok(add(on("/none", "small"))) else { panic!() };
    let moved = ModifyCacheDirective {
        id: Some(id as i64),
        directive: CacheDirectiveSpec { pool: Some("p".into()), ..CacheDirectiveSpec::default() },
    };
    assert!(invalid(&mut fs, moved.clone()).contains("remaining capacity of -50"));
    let forced = CacheDirectiveSpec { force: true, ..moved.directive };
    fs.ok(ModifyCacheDirective { directive: forced, ..moved });
    assert_eq!(get(&fs, id).pool, "p");
    fs.ok(RemoveCachePool { name: "p".into() });
    assert!(cache::directives_from(&fs.store, 0, 10).unwrap().is_empty());
}

#[test]
fn rights_are_those_of_the_pool() {
    let mut fs = Fs::new();
    let of = |mode| CachePoolSpec {
        owner: Some("ann".into()),
        group: Some("staff".into()),
        mode: Some(mode),
        ..pool("p")
    };
    fs.ok(AddCachePool { pool: of(0o640) });
    let denied = |fs: &mut Fs, name: &str, command: Command| -> bool {
        match fs.run(user(name), command) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(
                    error.to_string(),
                    format!(
                        "Permission denied while accessing pool p: user {name} does not have WRITE \
                         permissions."
                    )
                );
                true
            }
        }
    };
    assert!(!denied(&mut fs, "ann", add(on("/f", "p")).into()));
    assert!(denied(&mut fs, "staff", add(on("/f", "p")).into()));
    assert!(denied(&mut fs, "bob", RemoveCacheDirective { id: 1 }.into()));
    let made = cache::pool(&fs.store, "p").unwrap().unwrap();
    let sees = |name: &str| cache::is_visible(&fs.store, &user(name), &made).unwrap();
    assert!(sees("ann") && sees("staff") && !sees("bob"));
    assert!(cache::is_visible(&fs.store, &root(), &made).unwrap());
    let gone = invalid(&mut fs, RemoveCacheDirective { id: 9 });
    assert_eq!(gone, "No directive with ID 9 found.");
    assert_eq!(invalid(&mut fs, RemoveCacheDirective { id: 0 }), "Invalid negative ID.");
    let unnamed = ModifyCacheDirective { id: None, directive: on("/f", "p") };
    assert_eq!(invalid(&mut fs, unnamed), "Must supply an ID.");
}

#[test]
fn a_repeated_call_makes_no_second_directive() {
    let mut fs = Fs::new();
    fs.ok(AddCachePool { pool: pool("p") });
    let call = Some(CallId { client_id: [1; 16], call_id: 7 });
    let first = fs.submit(root(), call, add(on("/f", "p")).into()).unwrap();
    let again = fs.submit(root(), call, add(on("/f", "p")).into()).unwrap();
    assert_eq!(first, again);
    assert_eq!(cache::directives_from(&fs.store, 0, 10).unwrap().len(), 1);
}
