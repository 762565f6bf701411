//! One turn a line on standard input, its speed on standard output, for `compare`, which has other programs take turns
//! with this one.
//!
//! ```text
//! CONTENDER encode|decode K M CELL MEMORY THREADS MILLISECONDS
//! read|copy MEMORY THREADS MILLISECONDS
//! ```
//!
//! MEMORY is how many bytes of stripes are used in turn; 0 is one stripe again and again. The answer is GB of data a
//! second: of one thread by its processor time, of several together by the clock. `read` and `copy` are the limits of
//! memory.

use crate::processor_seconds;
use cairn_bench_codec::row::{Alignment, Contender, Row, Stripes};
use cairn_codec::Engine;
use std::error::Error;
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

type Answer<T> = Result<T, Box<dyn Error>>;

/// Answers turns until the input ends.
pub fn serve() -> Answer<()> {
    let mut last = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let rate = match words[..] {
            [limit, memory, threads, ms] => {
                let (memory, threads): (usize, usize) = (memory.parse()?, threads.parse()?);
                drop(last.take());
                bandwidth(limit == "copy", memory / threads, threads, ms.parse::<f64>()? / 1e3)
            }
            [name, operation, k, m, cell, memory, threads, ms] => {
                let (k, m, cell_len) = (k.parse()?, m.parse()?, cell.parse()?);
                let memory: usize = memory.parse()?;
                let decode = operation == "decode";
                let row = Row { decode, k, m, cell_len, from_memory: memory > 0 };
                let key = (row, memory, threads.parse::<usize>()?);
                if last.as_ref().is_none_or(|(found, _)| *found != key) {
                    // The old ones go before the new ones come.
                    drop(last.take());
                    let (_, memory, threads) = key;
                    let stripes = || Stripes::of(row, Alignment::Page, memory / threads);
                    last = Some((key, (0..threads).map(|_| stripes()).collect::<Vec<_>>()));
                }
                let Some((_, stripes)) = &mut last else { return Err("no stripes".into()) };
                let seconds = ms.parse::<f64>()? / 1e3;
                together(stripes, |stripes, clock| contend(name, row, stripes, seconds, clock))
            }
            _ => return Err(format!("unknown turn {line}").into()),
        };
        println!("{rate:.3}");
    }
    Ok(())
}

/// Seconds so far.
type Clock<'a> = &'a (dyn Fn() -> f64 + Sync);

/// The sum of what each thread answers that has one of `parts`.
fn together<T: Send>(parts: &mut [T], run: impl Fn(&mut T, Clock) -> f64 + Sync) -> f64 {
    let begin = Instant::now();
    match parts {
        [one] => run(one, &processor_seconds),
        _ => std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = parts
                .iter_mut()
                .map(|part| scope.spawn(move || run(part, &|| begin.elapsed().as_secs_f64())))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).sum()
        }),
    }
}

fn contend(name: &str, row: Row, stripes: &mut Stripes, seconds: f64, clock: Clock) -> f64 {
    let mut contender = match name {
        "isa-l" => Contender::isal(row),
        "reed-solomon-erasure" => Contender::erasure(row),
        "reed-solomon-simd" => Contender::simd(row),
        _ => Contender::cairn(row, Engine::best()),
    };
    // What is made at the first use is made.
    contender.run(stripes);
    repeat(row.data_len(), seconds, clock, || contender.run(stripes))
}

/// GB a second of something that handles `len` bytes.
fn repeat(len: usize, seconds: f64, clock: Clock, mut once: impl FnMut()) -> f64 {
    let (start, mut calls) = (clock(), 0);
    loop {
        (0..4).for_each(|_| once());
        calls += 4;
        let used = clock() - start;
        if used >= seconds {
            return (calls * len) as f64 / used / 1e9;
        }
    }
}

/// GB a second that threads together read, or copy, each in memory of its own.
fn bandwidth(copy: bool, len: usize, threads: usize, seconds: f64) -> f64 {
    let mut parts: Vec<_> =
        (0..threads).map(|_| (vec![1_u64; len / 16], vec![2_u64; len / 16])).collect();
    together(&mut parts, |(from, to), clock| {
        let read = if copy { len / 2 } else { len };
        repeat(read, seconds, clock, || {
            if copy {
                to.copy_from_slice(black_box(from));
                black_box(&to);
            } else {
                for half in [&*from, &*to] {
                    black_box(black_box(half).iter().fold(0, |sum: u64, word| sum ^ word));
                }
            }
        })
    })
}
