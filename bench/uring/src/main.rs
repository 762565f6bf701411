//! What a DataNode's three kinds of work cost with epoll and ordinary calls, and with io_uring: packets from sockets
//! into files, packets from files into sockets, and short reads that are asked for one by one. One thread does the
//! work of the DataNode, one for each connection is its client; all on the loopback interface.
//!
//! `cargo run --release -- FOLDER`: makes its files in `FOLDER/uring`, which must not be there. Prints the server's
//! processor time and the rate of each, medians of five turns.

mod epoll;
mod load;
mod uring;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::path::PathBuf;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Packets are received and written to files.
    Receive,
    /// Packets are read from files and sent.
    Send,
    /// Eight bytes ask for as many as a packet has from some place of a file.
    Ask,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub work: Work,
    pub connections: usize,
    /// Bytes of a packet, or of an answer.
    pub packet: usize,
    /// Packets of each connection.
    pub packets: usize,
}

impl Load {
    /// Bytes of each connection's file.
    pub fn file_len(&self) -> u64 {
        match self.work {
            Work::Ask => 64 << 20,
            _ => (self.packet * self.packets) as u64,
        }
    }

    /// Where the answer to the question `number` starts.
    pub fn place(&self, number: usize) -> u64 {
        let places = self.file_len() / self.packet as u64;
        (number as u64).wrapping_mul(7919) % places * self.packet as u64
    }
}

/// What a turn took, in s: the server of processor time, and everything by the clock.
#[derive(Clone, Copy, Debug)]
struct Spent {
    server: f64,
    wall: f64,
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).context("cairn-bench-uring FOLDER")?;
    let folder = PathBuf::from(folder).join("uring");
    let loads = [
        Load { work: Work::Receive, connections: 6, packet: 256 << 10, packets: 640 },
        Load { work: Work::Send, connections: 6, packet: 256 << 10, packets: 640 },
        Load { work: Work::Ask, connections: 1, packet: 64 << 10, packets: 16_000 },
        Load { work: Work::Ask, connections: 16, packet: 64 << 10, packets: 2_000 },
        Load { work: Work::Ask, connections: 16, packet: 4 << 10, packets: 4_000 },
    ];
    println!(
        "{:<24} {:>12} {:>12} {:>12} {:>12}",
        "", "epoll, us", "uring, us", "epoll, /s", "uring, /s"
    );
    for load in loads {
        let mut turns = [Vec::new(), Vec::new()];
        for turn in 0..6 {
            for (engine, spent) in turns.iter_mut().enumerate() {
                let files = load::files(&folder, &load)?;
                let took = measure(load, files, engine == 1);
                std::fs::remove_dir_all(&folder)?;
                let took = took?;
                if turn > 0 {
                    spent.push(took);
                }
            }
        }
        let count = (load.connections * load.packets) as f64;
        let us = |spent: &[Spent]| median(spent, |s| s.server * 1e6 / count);
        let rate = |spent: &[Spent]| median(spent, |s| count / s.wall);
        let [epoll, uring] = &turns;
        let name =
            format!("{:?} {} KiB, {} at once", load.work, load.packet >> 10, load.connections);
        println!(
            "{name:<24} {:>12.1} {:>12.1} {:>12.0} {:>12.0}",
            us(epoll),
            us(uring),
            rate(epoll),
            rate(uring)
        );
    }
    Ok(())
}

fn median(spent: &[Spent], of: impl Fn(&Spent) -> f64) -> f64 {
    let mut all: Vec<f64> = spent.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn measure(load: Load, files: Vec<File>, is_uring: bool) -> Result<Spent> {
    let (sockets, clients) = load::clients(&load)?;
    let before = cpu(ClockId::ProcessCPUTime);
    let start = std::time::Instant::now();
    match is_uring {
        true => uring::serve(&load, sockets, files)?,
        false => epoll::serve(&load, sockets, files)?,
    };
    let wall = start.elapsed().as_secs_f64();
    let mut clients_took = 0.0;
    for client in clients {
        clients_took += client.join().expect("a client")?;
    }
    let server = cpu(ClockId::ProcessCPUTime) - before - clients_took;
    Ok(Spent { server, wall })
}

/// Processor time so far, in s: of this process, which the kernel's helpers of a ring count to, or of this thread.
pub fn cpu(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
