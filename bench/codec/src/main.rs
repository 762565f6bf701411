//! Ratios that a busy machine does not spoil: contenders take turns of some milliseconds, and only the
//! processor time of this thread counts.
//!
//! Arguments: words that rows' names must contain; `malloc` for buffers as malloc aligns them;
//! `engines` for every engine instead of the other implementations; `serve` for turns that a program asks for, see
//! `serve`.

mod serve;

use cairn_bench_codec::isal;
use cairn_bench_codec::row::{Alignment, Contender, Row, Stripes};
use cairn_codec::{Engine, crc};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// Turns of each contender.
const ROUNDS: usize = 61;
/// Seconds of one turn.
const TURN: f64 = 0.004;

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["serve"] {
        if let Err(error) = serve::serve() {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
    let mut flag = |name: &str| {
        let before = words.len();
        words.retain(|word| word != name);
        words.len() != before
    };
    let alignment = if flag("malloc") { Alignment::Malloc } else { Alignment::Page };
    let engines = flag("engines");
    println!("GB/s of data, median of {ROUNDS} turns; cells aligned as {alignment:?}");
    for row in Row::all().filter(|row| words.iter().all(|word| row.name().contains(word))) {
        let mut contenders = vec![
            ("cairn", Contender::cairn(row, Engine::best())),
            ("isa-l", Contender::isal(row)),
            ("erasure", Contender::erasure(row)),
            ("simd", Contender::simd(row)),
        ];
        if engines {
            contenders = Engine::available()
                .map(|engine| (engine.name(), Contender::cairn(row, engine)))
                .collect();
        }
        let mut stripes = Stripes::new(row, alignment);
        let speeds = measure(contenders.len(), row.data_len(), |i| {
            contenders[i].1.run(&mut stripes);
        });
        print_row(&row.name(), contenders.iter().map(|c| c.0), &speeds);
    }
    if words.is_empty() || words.iter().any(|word| word == "crc") {
        for len in [512, 64 << 10, 1 << 20] {
            crc_row("crc32c", len, |data| crc::crc32c(0, data), isal::crc32c);
            crc_row("crc32", len, |data| crc::crc32(0, data), isal::crc32);
        }
    }
}

fn crc_row(name: &str, len: usize, ours: impl Fn(&[u8]) -> u32, theirs: impl Fn(&[u8]) -> u32) {
    let data: Vec<u8> = (0..len).map(|i| ((i * i) >> 3) as u8).collect();
    assert_eq!(ours(&data), theirs(&data), "{name}");
    let speeds = measure(2, len, |i| {
        black_box(if i == 0 { ours(black_box(&data)) } else { theirs(black_box(&data)) });
    });
    print_row(&format!("{name}/{len}"), ["cairn", "isa-l"].into_iter(), &speeds);
}

/// The speeds in GB/s of each of `count` contenders in every turn; `run(i)` works on `len` bytes.
fn measure(count: usize, len: usize, mut run: impl FnMut(usize)) -> Vec<Vec<f64>> {
    let batch = 4.max(32768 / len);
    let mut speeds = vec![Vec::with_capacity(ROUNDS); count];
    for _ in 0..ROUNDS {
        for (i, speeds) in speeds.iter_mut().enumerate() {
            let (start, mut calls) = (processor_seconds(), 0);
            let seconds = loop {
                (0..batch).for_each(|_| run(i));
                calls += batch;
                let seconds = processor_seconds() - start;
                if seconds >= TURN {
                    break seconds;
                }
            };
            speeds.push((calls * len) as f64 / seconds / 1e9);
        }
    }
    speeds
}

/// Processor time that this thread has used.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print_row<'a>(name: &str, contenders: impl Iterator<Item = &'a str>, speeds: &[Vec<f64>]) {
    print!("{name:<26}");
    for (contender, speeds) in contenders.zip(speeds) {
        print!(" {contender} {:6.1}", median(speeds.clone()));
    }
    let ratios = speeds[0].iter().zip(&speeds[1]).map(|(first, second)| first / second);
    println!("   first/second {:.2}", median(ratios.collect()));
}
