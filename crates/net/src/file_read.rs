//! Reads parts of files without holding up the other tasks of a runtime worker.
//!
//! What is in the page cache is read at once, with the one system call that any read takes. Only for
//! what has to come from the disk does the worker hand its other tasks over. Tested below.

use crate::disk_work::may_wait;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

/// Fills `buf` from `offset` on. Fails with `UnexpectedEof` when the file ends before.
pub fn read_exact_at(file: &File, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match read_cached(file, buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buf = &mut buf[count..];
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return may_wait(|| file.read_exact_at(buf, offset)),
            // A file system that can't tell, such as one in memory.
            Err(_) => return file.read_exact_at(buf, offset),
        }
    }
    Ok(())
}

/// Whether the byte at `offset` would have to come from the disk.
pub fn is_cold(file: &File, offset: u64) -> bool {
    matches!(read_cached(file, &mut [0], offset), Err(Errno::AGAIN))
}

fn read_cached(file: &File, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
    preadv2(file, &mut [IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn cold_and_hot() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 31) >> 8) as u8).collect();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        for _ in ["cold", "hot"] {
            for (from, to) in [(1_000_001, 1_500_000), (0, bytes.len()), (7, 7)] {
                let mut buf = vec![0; to - from];
                read_exact_at(&file, &mut buf, from as u64).unwrap();
                assert!(buf == bytes[from..to], "{from}..{to}");
            }
        }
        let past = read_exact_at(&file, &mut [0; 10], bytes.len() as u64 - 9).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn bytes_are_the_same_from_disk_and_cache() {
        tokio::spawn(async { cold_and_hot() }).await.unwrap();
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_reads_too() {
        cold_and_hot();
    }
}
