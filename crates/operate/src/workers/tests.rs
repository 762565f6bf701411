use super::*;
use cairn_net::monitoring::Metrics;
use cairn_wire::proto::hdfs as pb;
use prost::Message;
use tokio::sync::Notify;

static SWEEP: Kind = Kind { name: "sweep", does: "Sweeps.", pause: Pause::Safe };
static GUARD: Kind = Kind { name: "guard", does: "Watches.", pause: Pause::Never };
static PACK: Kind = Kind { name: "pack", does: "Packs.", pause: Pause::By("cairn ec pause form") };

fn only(workers: &Workers) -> Told {
    let mut all = workers.told();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[tokio::test]
async fn a_round_is_what_is_between_two_rests() {
    let workers = Workers::new();
    let worker = workers.begin_bounded(&SWEEP, "/data", || 7);
    assert_eq!((only(&workers).state, only(&workers).rounds), (State::Resting, 0));
    worker.rest(async {}).await;
    assert_eq!((only(&workers).state, only(&workers).rounds), (State::Working, 0));
    worker.has_done(3, Some(9), "rooms");
    // A round that goes on is the same one.
    worker.pass().await;
    assert_eq!(only(&workers).rounds, 0);
    assert_eq!(worker.rest(async { 5 }).await, 5);
    worker.failed("it is dark");
    let told = only(&workers);
    assert_eq!(
        (told.rounds, told.failures, told.last_failure.as_deref()),
        (1, 1, Some("it is dark"))
    );
    assert_eq!(told.progress, Some(Progress { done: 3, of: Some(9), what: "rooms" }));
    assert_eq!((told.of.as_str(), told.bytes_per_second), ("/data", Some(7)));
    worker.broken("no light");
    assert_eq!((only(&workers).state, only(&workers).failures), (State::Failed, 2));
    drop(worker);
    assert!(workers.told().is_empty(), "it is listed as long as it lives");
}

#[tokio::test]
async fn a_pause_takes_hold_where_a_round_would_begin() {
    let workers = Arc::new(Workers::new());
    let (due, worker) = (Arc::new(Notify::new()), workers.begin(&SWEEP, "1"));
    let again = Arc::clone(&due);
    let done = tokio::spawn(async move {
        worker.rest(again.notified()).await;
        worker.rest(again.notified()).await;
        worker
    });
    tokio::task::yield_now().await;
    workers.pause("sweep", true).unwrap();
    assert_eq!(only(&workers).state, State::Paused, "who rests is told to be paused at once");
    due.notify_one();
    tokio::task::yield_now().await;
    assert_eq!((only(&workers).state, only(&workers).rounds), (State::Paused, 0));
    let other = workers.begin(&SWEEP, "2");
    assert!(workers.told().iter().all(|told| told.is_paused), "who joins them is paused too");
    drop(other);
    workers.pause("sweep", false).unwrap();
    while only(&workers).rounds == 0 {
        due.notify_one();
        tokio::task::yield_now().await;
    }
    drop(done.await.unwrap());
}

#[tokio::test]
async fn only_what_may_wait_is_paused() {
    let workers = Workers::new();
    let _all = [&SWEEP, &GUARD, &PACK].map(|kind| workers.begin(kind, ""));
    assert_eq!(workers.pause("guard", true), Err(NotPaused::Unsafe));
    assert_eq!(workers.pause("pack", true), Err(NotPaused::By("cairn ec pause form")));
    assert_eq!(workers.pause("cook", true), Err(NotPaused::Unknown));
    let names = |names: &[&str]| pb::PauseWorkersRequestProto {
        names: names.iter().map(|name| name.to_string()).collect(),
        pause: true,
    };
    assert!(workers.pause_all(&names(&["sweep", "guard"])).is_err());
    assert!(workers.told().iter().all(|told| !told.is_paused), "none of them is");
    let answer = workers.pause_all(&names(&["sweep"])).unwrap();
    let told = pb::ListWorkersResponseProto::decode(&answer[..]).unwrap().workers;
    let paused: Vec<(&str, bool)> = told.iter().map(|w| (w.name.as_str(), w.paused)).collect();
    assert_eq!(paused, [("guard", false), ("pack", false), ("sweep", true)]);
}

#[tokio::test]
async fn figures_and_the_page_have_all_of_them() {
    let workers = Workers::new();
    let _all = [workers.begin(&SWEEP, "a\"b<"), workers.begin(&GUARD, "")];
    let mut metrics = Metrics::of("cairn_test");
    workers.figures(&mut metrics);
    let page = String::from_utf8(metrics.page().body).unwrap();
    assert!(page.contains("cairn_test_worker_rounds_total{worker=\"guard\"} 0\n"), "{page}");
    assert!(
        page.contains("cairn_test_worker_paused{worker=\"sweep\",of=\"a\\\"b<\"} 0\n"),
        "{page}"
    );
    let html = &regions(&workers)[0].html;
    assert!(html.contains("a&quot;b&lt;") || html.contains("a\"b&lt;"), "{html}");
}
