//! What was read, and how.

use crate::attributes::offset;
use crate::boundary::{null, put};
use crate::builder::{Fs, connection};
use crate::failure::{call, status};
use crate::file::{File, opened};
use libc::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// Bytes read of a file. `hdfsReadStatistics`: the layout is part of the ABI.
///
/// The client does not tell which DataNode was near, so all bytes count as remote.
#[repr(C)]
pub struct ReadStatistics {
    total: u64,
    local: u64,
    short_circuit: u64,
    zero_copy: u64,
}

/// Reads that were tried elsewhere because the first was late. `hdfsHedgedReadMetrics`: the layout is
/// part of the ABI.
#[repr(C)]
pub struct HedgedReadMetrics {
    hedged: u64,
    won: u64,
    in_current_thread: u64,
}

/// Tells what was read of a file, for [`hdfsFileFreeReadStatistics`].
#[unsafe(no_mangle)]
extern "C" fn hdfsFileGetReadStatistics(
    file: Option<&File>,
    place: Option<&mut MaybeUninit<Box<ReadStatistics>>>,
) -> c_int {
    status(|| {
        let total = opened(file)?.reader(libc::EINVAL)?.total().load(Ordering::Relaxed);
        put(place, Box::new(ReadStatistics { total, local: 0, short_circuit: 0, zero_copy: 0 }))
    })
}

/// Bytes that came from another machine.
#[unsafe(no_mangle)]
extern "C" fn hdfsReadStatisticsGetRemoteBytesRead(statistics: Option<&ReadStatistics>) -> i64 {
    call(-1, || statistics.map(|s| offset(s.total - s.local.min(s.total))).ok_or_else(null))
}

/// Counts what is read anew. 0, or the error's number.
#[unsafe(no_mangle)]
extern "C" fn hdfsFileClearReadStatistics(file: Option<&File>) -> c_int {
    let mut errno = 0;
    call((), || {
        let input = opened(file).and_then(|file| file.reader(libc::EINVAL));
        input
            .map(|input| input.total().store(0, Ordering::Relaxed))
            .inspect_err(|failure| errno = failure.errno)
    });
    errno
}

/// Gives back what [`hdfsFileGetReadStatistics`] made.
#[unsafe(no_mangle)]
extern "C" fn hdfsFileFreeReadStatistics(statistics: Option<Box<ReadStatistics>>) {
    drop(statistics);
}

/// Tells how often a read asked others because an answer was late, and how often one of those was quicker. No
/// hedge is made in the caller's thread.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetHedgedReadMetrics(
    fs: Option<&Fs>,
    place: Option<&mut MaybeUninit<Box<HedgedReadMetrics>>>,
) -> c_int {
    status(|| {
        let (hedged, won) = connection(fs)?.client.hedged_reads();
        put(place, Box::new(HedgedReadMetrics { hedged, won, in_current_thread: 0 }))
    })
}

/// Gives back what [`hdfsGetHedgedReadMetrics`] made.
#[unsafe(no_mangle)]
extern "C" fn hdfsFreeHedgedReadMetrics(metrics: Option<Box<HedgedReadMetrics>>) {
    drop(metrics);
}
