//! GB/s of data encoded and rebuilt by this project, ISA-L and `reed-solomon-erasure`, and of CRCs.

use cairn_bench_codec::isal;
use cairn_bench_codec::row::{Alignment, Contender, Row, Stripes};
use cairn_codec::{Engine, crc};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

fn codes(criterion: &mut Criterion) {
    for row in Row::all() {
        let mut group = criterion.benchmark_group(row.name());
        group.throughput(Throughput::BytesDecimal(row.data_len() as u64));
        let mut stripes = Stripes::new(row, Alignment::Page);
        for (name, mut contender) in [
            ("cairn", Contender::cairn(row, Engine::best())),
            ("isa-l", Contender::isal(row)),
            ("reed-solomon-erasure", Contender::erasure(row)),
            ("reed-solomon-simd", Contender::simd(row)),
        ] {
            group.bench_function(name, |bencher| bencher.iter(|| contender.run(&mut stripes)));
        }
        group.finish();
    }
}

type Crc = fn(&[u8]) -> u32;

fn crcs(criterion: &mut Criterion) {
    for len in [512, 64 << 10, 1 << 20] {
        let data = vec![0x5a; len];
        let mut group = criterion.benchmark_group(format!("crc/{len}"));
        group.throughput(Throughput::BytesDecimal(len as u64));
        let contenders: [(&str, Crc); 4] = [
            ("crc32c/cairn", |data| crc::crc32c(0, data)),
            ("crc32c/isa-l", isal::crc32c),
            ("crc32/cairn", |data| crc::crc32(0, data)),
            ("crc32/isa-l", isal::crc32),
        ];
        for (name, crc) in contenders {
            let id = BenchmarkId::from_parameter(name);
            group.bench_function(id, |bencher| bencher.iter(|| crc(black_box(&data))));
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(30);
    targets = codes, crcs
}
criterion_main!(benches);
