//! The order of questions, whoever fails.

use super::*;
use crate::now;
use cairn_stripe::BlockId;
use std::collections::BTreeSet;

/// Answers at once, and writes down what it was asked.
#[derive(Default)]
struct Script {
    asked: Vec<String>,
    /// DataNodes that fail whoever calls them.
    down: BTreeSet<char>,
    /// Packets that have not come to an end yet, and what the pipeline says next.
    events: VecDeque<Event<&'static str>>,
    /// DataNodes of the pipeline that is open.
    open: Vec<char>,
    /// Sending fails too where a DataNode has.
    breaks: bool,
    stamp: u64,
    blocks: i64,
    spares: Vec<char>,
}

impl Script {
    fn ask(&mut self, what: String) {
        self.asked.push(what);
    }

    fn asked(&mut self) -> String {
        std::mem::take(&mut self.asked).join(", ")
    }
}

impl Peers for Script {
    type Place = char;
    type Packet = ();
    type Error = &'static str;

    async fn add_block(
        &mut self,
        previous: Option<Block>,
    ) -> Result<(Block, Vec<char>), &'static str> {
        self.blocks += 1;
        self.stamp += 1;
        self.ask(format!("add behind {:?}", previous.map(|block| block.len)));
        let id = BlockId(self.blocks);
        Ok((Block { id, stamp: GenerationStamp(self.stamp), len: 0 }, vec!['a', 'b', 'c']))
    }

    async fn abandon_block(&mut self, block: Block) -> Result<(), &'static str> {
        self.ask(format!("abandon {}", block.id.0));
        Ok(())
    }

    async fn new_stamp(&mut self, block: Block) -> Result<GenerationStamp, &'static str> {
        self.stamp += 1;
        self.ask(format!("stamp for {}", block.len));
        Ok(GenerationStamp(self.stamp))
    }

    async fn update_pipeline(
        &mut self,
        old: Block,
        new: Block,
        places: &[char],
    ) -> Result<(), &'static str> {
        let (old, new) = (old.stamp.0, new.stamp.0);
        self.ask(format!("tell {old}>{new} {}", String::from_iter(places)));
        Ok(())
    }

    async fn additional_place(
        &mut self,
        _: Block,
        _: &[char],
        left_out: &[char],
    ) -> Result<char, &'static str> {
        self.ask(format!("another than {}", String::from_iter(left_out)));
        if self.spares.is_empty() { Err("no more") } else { Ok(self.spares.remove(0)) }
    }

    async fn fsync(&mut self) -> Result<(), &'static str> {
        self.ask("fsync".to_string());
        Ok(())
    }

    async fn complete(&mut self, last: Option<Block>) -> Result<(), &'static str> {
        self.ask(format!("complete {:?}", last.map(|block| block.len)));
        Ok(())
    }

    async fn open(&mut self, opening: Opening<'_, char>) -> Result<(), Failure<&'static str>> {
        let Opening { block, stage, places, .. } = opening;
        self.ask(format!("{stage:?} {} {}", block.len, String::from_iter(places)));
        let place = places.iter().position(|place| self.down.contains(place));
        if place.is_some() {
            return Err(Failure { place, cause: "down" });
        }
        self.open = places.to_vec();
        Ok(())
    }

    async fn copy(&mut self, _: Block, from: &char, to: &char) -> Result<(), &'static str> {
        self.ask(format!("copy {from}{to}"));
        if self.down.contains(from) || self.down.contains(to) { Err("down") } else { Ok(()) }
    }

    async fn send(&mut self, header: Header, _: &()) -> Result<(), &'static str> {
        let what = if header.is_last { "last" } else { "send" };
        self.ask(format!("{what} {}", header.seqno));
        let place = self.open.iter().position(|place| self.down.contains(place));
        let event = match place {
            None => Event::Acknowledged(header.seqno),
            Some(_) => Event::Failed(Failure { place, cause: "down" }),
        };
        self.events.push_back(event);
        if self.breaks && place.is_some() { Err("closed") } else { Ok(()) }
    }

    async fn event(&mut self) -> Event<&'static str> {
        self.events.pop_front().expect("something is due")
    }

    fn arrived(&mut self) -> Option<Event<&'static str>> {
        self.events.pop_front()
    }

    async fn close(&mut self, _: bool) {
        self.events.clear();
    }

    fn leave_out(&mut self, place: &char, _: &&'static str) {
        self.asked.push(format!("without {place}"));
    }

    fn not_replaced(&mut self, _: &'static str) {
        self.asked.push("not replaced".to_string());
    }
}

const RULES: Rules = Rules {
    replication: 2,
    open_retries: 2,
    recovery_retries: 2,
    replace: ReplaceDataNode::Default,
    replace_best_effort: false,
};

fn writing(rules: Rules) -> Pipeline<Script> {
    Pipeline::new(Script::default(), rules)
}

fn send(pipeline: &mut Pipeline<Script>, offset: u64) {
    now(pipeline.send((), offset, 10, false)).unwrap();
}

#[test]
fn a_block_begins_with_its_first_packet_and_ends_when_all_is_acknowledged() {
    let mut pipeline = writing(RULES);
    now(pipeline.end_block()).unwrap();
    assert_eq!(pipeline.peers.asked(), "", "there is none");
    send(&mut pipeline, 0);
    assert_eq!(pipeline.peers.asked(), "add behind None, Create 0 abc, send 0");
    assert_eq!(pipeline.in_flight(), 1);
    send(&mut pipeline, 10);
    now(pipeline.flush(false)).unwrap();
    now(pipeline.flush(true)).unwrap();
    assert_eq!(pipeline.peers.asked(), "send 1, fsync, send 2", "the NameNode is told once");
    now(pipeline.end_block()).unwrap();
    send(&mut pipeline, 0);
    assert_eq!(pipeline.peers.asked(), "last 3, add behind Some(20), Create 0 abc, send 0");
    now(pipeline.close()).unwrap();
    assert_eq!(pipeline.peers.asked(), "last 1, complete Some(10)");
}

#[test]
fn a_pipeline_that_breaks_is_opened_again_and_told_of_before_anything_is_sent_again() {
    for breaks in [false, true] {
        let mut pipeline = writing(RULES);
        pipeline.peers.breaks = breaks;
        send(&mut pipeline, 0);
        now(pipeline.flush(false)).unwrap();
        pipeline.peers.asked();
        pipeline.peers.down.insert('b');
        send(&mut pipeline, 10);
        now(pipeline.flush(false)).unwrap();
        let wanted =
            "send 1, without b, stamp for 10, StreamingRecovery 10 ac, tell 1>2 ac, send 1";
        assert_eq!(pipeline.peers.asked(), wanted, "{breaks}");
        now(pipeline.close()).unwrap();
        assert_eq!(pipeline.peers.asked(), "last 2, complete Some(20)");
    }
}

#[test]
fn blocks_whose_pipeline_cannot_be_opened_are_given_back() {
    let mut pipeline = writing(RULES);
    pipeline.peers.down.insert('c');
    assert!(matches!(now(pipeline.send((), 0, 10, false)), Err(PipelineError::Peer("down"))));
    let once = |block| format!("add behind None, Create 0 abc, abandon {block}, without c");
    assert_eq!(pipeline.peers.asked(), [1, 2, 3].map(once).join(", "));
    assert_eq!(pipeline.in_flight(), 0);
    pipeline.peers.down.clear();
    send(&mut pipeline, 0);
    assert_eq!(pipeline.peers.asked(), "add behind None, Create 0 abc, send 0");
}

#[test]
fn when_only_the_end_is_missing_the_datanodes_are_asked_to_finalize() {
    let mut pipeline = writing(RULES);
    send(&mut pipeline, 0);
    now(pipeline.flush(false)).unwrap();
    pipeline.peers.asked();
    pipeline.peers.down.insert('a');
    now(pipeline.end_block()).unwrap();
    let wanted = "last 1, without a, stamp for 10, CloseRecovery 10 bc, tell 1>2 bc";
    assert_eq!(pipeline.peers.asked(), wanted);
    assert_eq!(pipeline.previous.map(|block| (block.stamp.0, block.len)), Some((2, 10)));
}

#[test]
fn who_fails_while_the_pipeline_is_opened_again_costs_the_others_another_stamp() {
    for (retries, down) in [(2, "ab"), (1, "ab"), (3, "abc")] {
        let mut pipeline = writing(Rules { recovery_retries: retries, ..RULES });
        send(&mut pipeline, 0);
        pipeline.peers.asked();
        pipeline.peers.down = down.chars().collect();
        let failure = Failure { place: Some(0), cause: "down" };
        pipeline.peers.events.clear();
        let done = now(pipeline.on_event(Event::Failed(failure)));
        let mut wanted = "without a, stamp for 0, StreamingRecovery 0 bc".to_string();
        match (retries, down) {
            (1, _) => assert!(matches!(done, Err(PipelineError::NoProgress { recoveries: 1, .. }))),
            (_, "ab") => {
                wanted += ", without b, stamp for 0, StreamingRecovery 0 c, tell 1>3 c, send 0";
                assert!(done.is_ok(), "{done:?}");
            }
            _ => {
                wanted += ", without b, stamp for 0, StreamingRecovery 0 c, without c";
                assert!(matches!(done, Err(PipelineError::AllFailed { .. })), "{done:?}");
            }
        }
        assert_eq!(pipeline.peers.asked(), wanted);
    }
}

#[test]
fn an_acknowledgement_is_progress() {
    let mut pipeline = writing(Rules { recovery_retries: 1, ..RULES });
    for (at, place) in ['a', 'b'].into_iter().enumerate() {
        send(&mut pipeline, 10 * at as u64);
        now(pipeline.flush(false)).unwrap();
        pipeline.peers.down.insert(place);
        let failure = Failure { place: Some(0), cause: "down" };
        now(pipeline.on_event(Event::Failed(failure))).unwrap();
    }
    let failure = Failure { place: Some(0), cause: "down" };
    let done = now(pipeline.on_event(Event::Failed(failure)));
    assert!(matches!(done, Err(PipelineError::NoProgress { .. })), "{done:?}");
}

#[test]
fn a_datanode_that_is_added_gets_what_the_others_have_first() {
    let rules = Rules { replication: 3, replace: ReplaceDataNode::Always, ..RULES };
    for (spares, best_effort, asked) in [
        (
            "d",
            false,
            "another than b, copy ad, stamp for 10, StreamingRecovery 10 acd, tell 1>2 acd",
        ),
        (
            "xd",
            false,
            "another than b, copy ax, another than bx, copy cd, stamp for 10, StreamingRecovery 10 acd, tell 1>2 acd",
        ),
        (
            "",
            true,
            "another than b, not replaced, stamp for 10, StreamingRecovery 10 ac, tell 1>2 ac",
        ),
        ("", false, "another than b"),
        (
            "xyzd",
            false,
            "another than b, copy ax, another than bx, copy cy, another than bxy, copy az",
        ),
    ] {
        let mut pipeline = writing(Rules { replace_best_effort: best_effort, ..rules });
        send(&mut pipeline, 0);
        now(pipeline.flush(false)).unwrap();
        pipeline.peers.asked();
        pipeline.peers.down.extend(['b', 'x', 'y', 'z']);
        pipeline.peers.spares = spares.chars().collect();
        let failure = Failure { place: Some(1), cause: "down" };
        let done = now(pipeline.on_event(Event::Failed(failure)));
        assert_eq!(pipeline.peers.asked(), format!("without b, {asked}"), "{spares}");
        assert_eq!(done.is_ok(), asked.contains("tell"), "{done:?}");
    }
}

#[test]
fn an_append_takes_a_new_stamp_before_anything_is_sent() {
    let block = Block { id: BlockId(7), stamp: GenerationStamp(1), len: 100 };
    let script = || Script { stamp: 1, ..Script::default() };
    let opened = now(Pipeline::append(script(), RULES, block, vec!['a', 'b']));
    let mut pipeline = opened.unwrap();
    assert_eq!(pipeline.peers.asked(), "stamp for 100, Append 100 ab, tell 1>2 ab");
    now(pipeline.end_block()).unwrap();
    assert_eq!(pipeline.peers.asked(), "last 0", "even of nothing");
    let mut script = script();
    script.down.insert('a');
    let mut pipeline = now(Pipeline::append(script, RULES, block, vec!['a', 'b'])).unwrap();
    let wanted =
        "stamp for 100, Append 100 ab, without a, stamp for 100, AppendRecovery 100 b, tell 1>3 b";
    assert_eq!(pipeline.peers.asked(), wanted);
    let none = now(Pipeline::append(Script::default(), RULES, block, vec![]));
    assert!(matches!(none, Err(PipelineError::NoPlaces(_))));
}

#[test]
fn an_acknowledgement_out_of_turn_ends_the_file() {
    let mut pipeline = writing(RULES);
    send(&mut pipeline, 0);
    let done = now(pipeline.on_event(Event::Acknowledged(3)));
    assert!(matches!(done, Err(PipelineError::OutOfTurn { seqno: 3, due: Some(0) })));
    assert_eq!(pipeline.in_flight(), 1);
}
