//! Calls of one kind over one connection, as many at a time as its window takes.

use crate::connection::{Connection, Load};
use crate::nodes::{self, Nodes};
use crate::ops::{Op, Step};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Users that the connections belong to, in turn.
const USERS: usize = 8;
/// How long to wait before a file is completed again that lacks reports.
const COMPLETE_AGAIN: Duration = Duration::from_millis(2);

const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

/// What a connection has seen.
#[derive(Default)]
pub struct Outcome {
    pub latencies_us: Vec<u32>,
    pub failed: u64,
    pub first_error: Option<String>,
}

/// A place in the window.
struct Slot {
    number: u64,
    begun: Instant,
    step: Step,
}

/// Sends calls until `calls` have been begun by all connections together, and their answers are here.
pub async fn drive(
    load: &Load,
    index: usize,
    op: &Op,
    calls: u64,
    next: &AtomicU64,
    window: usize,
    nodes: Option<Nodes>,
) -> Result<Outcome, String> {
    let user = if op.needs_superuser() {
        load.superuser.clone()
    } else {
        format!("load{}", index % USERS)
    };
    let mut connection = Connection::open(&load.addr, &user, CLIENT).await?;
    if load.reads_anywhere {
        connection.read_anywhere();
    }
    let client = format!("load-{index}");
    let mut slots: Vec<Option<Slot>> = (0..window).map(|_| None).collect();
    let mut free: Vec<usize> = (0..window).collect();
    let mut outcome = Outcome::default();
    // Call ids say which slot, and are never used twice.
    let mut turn = 0_i32;
    let mut call_id = |slot: usize| {
        turn += 1;
        turn * window as i32 + slot as i32
    };
    loop {
        while let Some(slot) = free.pop() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= calls {
                free.push(slot);
                break;
            }
            op.begin(&mut connection, CLIENT, &client, number, call_id(slot));
            slots[slot] = Some(Slot { number, begun: Instant::now(), step: Step::First });
        }
        if free.len() == window {
            return Ok(outcome);
        }
        connection.flush().await?;
        connection.fill().await?;
        let mut written = Vec::new();
        while let Some((id, answer)) = connection.next_answer()? {
            if id < 0 || id == nodes::CALL_ID {
                if let Err(error) = answer {
                    outcome.first_error.get_or_insert(error);
                }
                continue;
            }
            let at = id as usize % window;
            let Some(slot) = &mut slots[at] else { continue };
            match answer.and_then(|message| op.answered(&mut slot.step, message)) {
                Ok(true) => {
                    let us = slot.begun.elapsed().as_micros();
                    outcome.latencies_us.push(u32::try_from(us).unwrap_or(u32::MAX));
                }
                Ok(false) => {
                    written.push(at);
                    continue;
                }
                Err(error) => {
                    outcome.failed += 1;
                    outcome.first_error.get_or_insert(error);
                }
            }
            slots[at] = None;
            free.push(at);
        }
        // DataNodes tell of the blocks that were given out, then their files are completed.
        let blocks = written.iter().filter_map(|at| match &slots[*at].as_ref()?.step {
            Step::Placed(_, located) => Some(&**located),
            _ => None,
        });
        if let Some(nodes) = &nodes {
            nodes.received(&mut connection, blocks);
        }
        if written
            .iter()
            .any(|at| matches!(slots[*at], Some(Slot { step: Step::Incomplete(..), .. })))
        {
            tokio::time::sleep(COMPLETE_AGAIN).await;
        }
        for at in written {
            if let Some(slot) = &mut slots[at] {
                op.go_on(
                    &mut connection,
                    CLIENT,
                    &client,
                    slot.number,
                    call_id(at),
                    &mut slot.step,
                );
            }
        }
    }
}
