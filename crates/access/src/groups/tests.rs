//! Look-ups that come, that fail, and that come late.

use std::path::Path;

use super::*;

/// Longer than any wait for a condition should take.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn groups_come_from_the_table_then_the_system() {
    let fixed = vec![("alice".to_string(), vec!["staff".to_string(), "dev".to_string()])];
    let groups = Groups::new(&GroupsConfig { fixed, ..GroupsConfig::default() });
    assert_eq!(groups.of("alice").await, ["staff", "dev"]);
    assert_eq!(groups.of("root").await.first().map(String::as_str), Some("root"));
    for nobody in ["", "no-such-user-here", "-h", "0", "a\0b"] {
        assert!(groups.of(nobody).await.is_empty(), "{nobody:?}");
    }
}

/// Groups that a shell script tells: the user is `$1`, and it runs in `dir`.
fn scripted(dir: &Path, script: &str) -> Groups {
    let script = format!("cd '{}' || exit 1\n{script}", dir.display());
    let command = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    Groups { command, lookup_max: LONG, ..Groups::new(&GroupsConfig::default()) }
}

/// Makes the system be asked for `user` again.
fn age(groups: &Groups, user: &str) {
    known_of(groups, user, |known| known.believed_for = Duration::ZERO);
}

fn known_of<R>(groups: &Groups, user: &str, tell: impl FnOnce(&mut Known) -> R) -> R {
    let mut cache = groups.cache();
    tell(cache.get_mut(user).and_then(|user| user.known.as_mut()).expect("a known user"))
}

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, waited).await.unwrap_or_else(|_| panic!("waited too long until {what}"));
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn a_failure_leaves_the_groups_that_were_known() {
    let dir = tempfile::tempdir().expect("a folder");
    let groups = scripted(dir.path(), "echo >> asked; cat answer");
    let (answer, asked) = (dir.path().join("answer"), dir.path().join("asked"));
    std::fs::write(&answer, "staff dev\n").expect("an answer");
    assert_eq!(groups.of("alice").await, ["staff", "dev"]);

    std::fs::remove_file(&answer).expect("the answer");
    age(&groups, "alice");
    assert_eq!(groups.of("alice").await, ["staff", "dev"]);
    assert_eq!(groups.of("alice").await, ["staff", "dev"]);
    assert_eq!(lines(&asked), 2, "what failed just now is not tried at once");
    let believed_for = known_of(&groups, "alice", |known| known.believed_for);
    assert_eq!(believed_for, Duration::from_secs(30));

    std::fs::write(&answer, "ops\n").expect("an answer");
    age(&groups, "alice");
    assert_eq!(groups.of("alice").await, ["ops"]);
    assert_eq!(known_of(&groups, "alice", |known| known.believed_for), Duration::from_secs(300));
}

#[tokio::test]
async fn a_failure_is_not_believed_for_long() {
    let mut groups = Groups::new(&GroupsConfig::default());
    groups.command = vec!["/no/such/program".to_owned()];
    assert!(groups.of("alice").await.is_empty());
    assert_eq!(groups.known("alice"), Some(Vec::new()));
    let believed_for = known_of(&groups, "alice", |known| known.believed_for);
    assert_eq!(believed_for, Duration::from_secs(30));
    groups.failure_believed_for = Duration::ZERO;
    groups.refresh();
    assert!(groups.of("alice").await.is_empty());
    groups.command = ["echo", "staff"].map(str::to_owned).to_vec();
    assert_eq!(groups.of("alice").await, ["staff", "alice"]);
}

#[tokio::test]
async fn groups_are_not_kept_forever_without_an_answer() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut groups = scripted(dir.path(), "cat answer");
    std::fs::write(dir.path().join("answer"), "staff\n").expect("an answer");
    assert_eq!(groups.of("alice").await, ["staff"]);
    std::fs::remove_file(dir.path().join("answer")).expect("the answer");
    age(&groups, "alice");
    // As if ten times as long had passed.
    groups.believed_for = Duration::ZERO;
    assert!(groups.of("alice").await.is_empty());
}

#[tokio::test]
async fn a_group_without_a_name_does_not_take_the_others_away() {
    let dir = tempfile::tempdir().expect("a folder");
    let unnamed =
        "echo staff 4711 dev; echo \"id: cannot find name for group ID 4711\" >&2; exit 1";
    assert_eq!(scripted(dir.path(), unnamed).of("alice").await, ["staff", "dev"]);
    // One whose name is a number is a group.
    assert_eq!(scripted(dir.path(), "echo staff 4711").of("alice").await, ["staff", "4711"]);
    // What was killed may have told a part.
    let killed = scripted(dir.path(), "echo staff; kill -9 $$");
    assert!(killed.of("alice").await.is_empty());
}

#[tokio::test]
async fn a_user_is_looked_up_once_at_a_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let script = "echo >> asked; while [ ! -e go ]; do sleep 0.02; done; cat answer";
    let groups = Arc::new(scripted(dir.path(), script));
    let (asked, go) = (dir.path().join("asked"), dir.path().join("go"));
    std::fs::write(dir.path().join("answer"), "staff\n").expect("an answer");
    let ask = || {
        let groups = Arc::clone(&groups);
        tokio::spawn(async move { groups.of("alice").await })
    };

    let callers: Vec<_> = (0..20).map(|_| ask()).collect();
    wait_until("the system is asked", || asked.exists()).await;
    assert_eq!(groups.known("alice"), None);
    std::fs::write(&go, "").expect("a file");
    for caller in callers {
        assert_eq!(caller.await.expect("an answer"), ["staff"]);
    }
    assert_eq!(lines(&asked), 1);

    std::fs::remove_file(&go).expect("the file");
    std::fs::write(dir.path().join("answer"), "dev\n").expect("an answer");
    age(&groups, "alice");
    assert_eq!(groups.known("alice"), None);
    let first = ask();
    wait_until("the system is asked again", || lines(&asked) == 2).await;
    // The others do not wait for it.
    assert_eq!(groups.known("alice").as_deref(), Some(&["staff".to_owned()][..]));
    assert_eq!(ask().await.expect("an answer"), ["staff"]);
    std::fs::write(&go, "").expect("a file");
    assert_eq!(first.await.expect("an answer"), ["dev"]);
    assert_eq!(lines(&asked), 2);
}

#[tokio::test]
async fn few_users_are_looked_up_at_a_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let script = "echo >> asked; while [ ! -e go ]; do sleep 0.02; done; echo $1";
    let groups = Arc::new(scripted(dir.path(), script));
    let callers = (0..3 * LOOKUPS).map(|number| {
        let groups = Arc::clone(&groups);
        tokio::spawn(async move { groups.of(&format!("user{number}")).await })
    });
    let callers: Vec<_> = callers.collect();
    let asked = dir.path().join("asked");
    wait_until("some are asked for", || lines(&asked) == LOOKUPS).await;
    assert_eq!(groups.lookups.available_permits(), 0);
    std::fs::write(dir.path().join("go"), "").expect("a file");
    for (number, caller) in callers.into_iter().enumerate() {
        assert_eq!(caller.await.expect("an answer"), [format!("user{number}")]);
    }
    assert_eq!(lines(&asked), 3 * LOOKUPS);
}

#[tokio::test]
async fn a_lookup_that_hangs_is_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut groups = scripted(dir.path(), "echo $$ > started; mv started pid; exec sleep 1000");
    groups.lookup_max = Duration::from_secs(1);
    let pid = dir.path().join("pid");
    for attempt in 0.. {
        assert!(groups.of(&format!("user{attempt}")).await.is_empty());
        // It may have been ended before it could say who it is.
        if pid.exists() {
            break;
        }
    }
    let pid = std::fs::read_to_string(pid).expect("a process");
    let process = Path::new("/proc").join(pid.trim());
    wait_until("the process is gone", || !process.exists()).await;
}

#[tokio::test]
async fn made_up_users_do_not_drive_real_ones_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let groups = scripted(dir.path(), "echo staff");
    assert_eq!(groups.of("alice").await, ["staff"]);
    for number in 0..3 * MAX_CACHED_USERS {
        let user = format!("user{number}");
        drop(groups.asking(&user));
        groups.note(&user, Ok(Vec::new()));
    }
    assert!(groups.cache().len() <= MAX_CACHED_USERS);
    assert_eq!(groups.known("alice").as_deref(), Some(&["staff".to_owned()][..]));

    // Those who are asked for are none to keep without end either.
    for number in 0..3 * MAX_CACHED_USERS {
        drop(groups.asking(&format!("asked{number}")));
    }
    assert!(groups.cache().len() <= MAX_CACHED_USERS);
    assert!(groups.known("alice").is_some());
    for number in 0..MAX_CACHED_USERS {
        let user = format!("real{number}");
        drop(groups.asking(&user));
        groups.note(&user, Ok(vec!["staff".to_owned()]));
    }
    assert!(groups.cache().len() <= MAX_CACHED_USERS);
    assert!(groups.known(&format!("real{}", MAX_CACHED_USERS - 1)).is_some());
}
