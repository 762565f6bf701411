//! What codes cost: how fast they encode, what is read to rebuild one data unit, and how fast that is.
//!
//! `cargo run --release -p cairn-codec --example codes [KIB [MILLISECONDS]]` prints a line of JSON for each code and shape, with
//! units of that length, in memory: GB of data encoded in a second of one thread, units that are read for a lost data unit
//! (the mean, the least and the most), and GB rebuilt in a second. A second is one of the thread's processor time, where Linux
//! tells it, so that a busy machine does not spoil it.

use cairn_codec::{CauchyGood, Codec, CodecError, CodecKind, Hitchhiker, Variant};
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const SHAPES: [(usize, usize); 3] = [(3, 2), (6, 3), (10, 4)];

/// A code, and how one lost data unit is rebuilt by it.
enum Code {
    Plain(Codec),
    Cauchy(CauchyGood),
    Hitchhiker(Hitchhiker),
}

impl Code {
    fn all(k: usize, m: usize) -> Result<Vec<(&'static str, Code)>, CodecError> {
        Ok(vec![
            ("rs", Code::Plain(Codec::new(CodecKind::Rs, k, m)?)),
            ("cauchy-good", Code::Cauchy(CauchyGood::new(k, m)?)),
            ("hitchhiker-xor", Code::Hitchhiker(Hitchhiker::new(Variant::Xor, k, m)?)),
            ("hitchhiker-xor+", Code::Hitchhiker(Hitchhiker::new(Variant::XorPlus, k, m)?)),
        ])
    }

    fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodecError> {
        match self {
            Code::Plain(code) => code.encode(data, parity),
            Code::Cauchy(code) => code.encode(data, parity),
            Code::Hitchhiker(code) => code.encode(data, parity),
        }
    }

    /// Rebuilds a unit from the units or halves that it takes, and says how many units were read.
    fn repair(&self, units: &[&[u8]], lost: usize, out: &mut [u8]) -> Result<f64, CodecError> {
        let others = || -> Vec<Option<&[u8]>> {
            units.iter().enumerate().map(|(unit, bytes)| (unit != lost).then_some(*bytes)).collect()
        };
        match self {
            Code::Plain(code) => {
                code.decode(&others(), &[lost], &mut [out])?;
                Ok(code.data_count() as f64)
            }
            Code::Cauchy(code) => {
                code.decode(&others(), &[lost], &mut [out])?;
                Ok(code.data_count() as f64)
            }
            Code::Hitchhiker(code) => {
                let reads = code.reads(lost);
                let halves: Vec<&[u8]> = reads
                    .iter()
                    .map(|half| {
                        let (first, second) = units[half.unit].split_at(units[half.unit].len() / 2);
                        if half.is_second { second } else { first }
                    })
                    .collect();
                code.repair(lost, &halves, out)?;
                Ok(halves.len() as f64 / 2.0)
            }
        }
    }
}

/// Seconds of this thread's processor time so far, or of the clock.
fn now() -> f64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// GB a second of `once`, which does `bytes`, over `length`.
fn rate(
    length: Duration,
    bytes: usize,
    mut once: impl FnMut(usize) -> Result<(), CodecError>,
) -> Result<f64, CodecError> {
    once(0)?;
    let (begun, begin, mut turns) = (Instant::now(), now(), 0);
    while begun.elapsed() < length {
        once(turns)?;
        turns += 1;
    }
    Ok((turns * bytes) as f64 / (now() - begin).max(1e-9) / 1e9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |default: usize| words.next().map_or(Ok(default), |word| word.parse());
    let len = number(1024)? << 10;
    let length = Duration::from_millis(number(300)? as u64);
    for (k, m) in SHAPES {
        for (name, code) in Code::all(k, m)? {
            let mut units: Vec<Vec<u8>> = (0..k + m)
                .map(|unit| (0..len).map(|at| (at * 31 + unit * 17 + at / 251) as u8).collect())
                .collect();
            let (data, parity) = units.split_at_mut(k);
            let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
            let encoded = rate(length, k * len, |_| code.encode(black_box(&data), &mut parity))?;
            let units: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
            let mut out = vec![0; len];
            let mut read = Vec::with_capacity(k);
            for lost in 0..k {
                read.push(code.repair(&units, lost, &mut out)?);
                if out != units[lost] {
                    return Err(format!("{name} {k} {m}: unit {lost} is not what it was").into());
                }
            }
            let rebuilt = rate(length, len, |turn| {
                code.repair(black_box(&units), turn % k, &mut out).map(|_| ())
            })?;
            let mean = read.iter().sum::<f64>() / k as f64;
            let (least, most) = read
                .iter()
                .fold((f64::MAX, 0.0f64), |(low, high), &units| (low.min(units), high.max(units)));
            println!(
                "{{\"code\":\"{name}\",\"k\":{k},\"m\":{m},\"encode\":{encoded:.4},\"read\":{mean:.4},\
                 \"read_least\":{least},\"read_most\":{most},\"repair\":{rebuilt:.4}}}"
            );
        }
    }
    Ok(())
}
