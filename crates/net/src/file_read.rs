//! Reads parts of files without holding up the other tasks of a runtime worker.
//!
//! What is in the page cache is read at once, with the one system call that any read takes. Only for
//! what has to come from the disk does the worker hand its other tasks over. Tested below.

use cairn_process::disk_work::{may_wait, quick};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

/// Fills `buf` from `offset` on. Fails with `UnexpectedEof` when the file ends before.
pub fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    read_exact_parts_at(file, [buf], offset)
}

/// The same; what may have to wait for the disk is handed to `waits`, which runs it.
pub fn read_exact_at_by(
    file: &File,
    buf: &mut [u8],
    offset: u64,
    waits: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    read_parts_by(file, [buf], offset, waits)
}

/// Fills parts with what follows each other in the file from `offset` on. Fails as [`read_exact_at`] does.
pub fn read_exact_parts_at<const N: usize>(
    file: &File,
    parts: [&mut [u8]; N],
    offset: u64,
) -> io::Result<()> {
    read_parts_by(file, parts, offset, |wait| wait())
}

fn read_parts_by<const N: usize>(
    file: &File,
    parts: [&mut [u8]; N],
    mut offset: u64,
    waits: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let mut slices = parts.map(IoSliceMut::new);
    let mut left = &mut slices[..];
    // Parts of no bytes at the front.
    IoSliceMut::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match preadv2(file, left, offset, ReadWriteFlags::NOWAIT) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                IoSliceMut::advance_slices(&mut left, count);
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return waits(&mut || may_wait(|| read_each(file, left, offset))),
            // A file system that can't tell, such as one in memory, or one that may hang.
            Err(_) => return waits(&mut || quick(|| read_each(file, left, offset))),
        }
    }
    Ok(())
}

fn read_each(file: &File, parts: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<()> {
    for part in parts {
        file.read_exact_at(part, offset)?;
        offset += part.len() as u64;
    }
    Ok(())
}

/// Whether the byte at `offset` would have to come from the disk.
pub fn is_cold(file: &File, offset: u64) -> bool {
    let read = preadv2(file, &mut [IoSliceMut::new(&mut [0])], offset, ReadWriteFlags::NOWAIT);
    matches!(read, Err(Errno::AGAIN))
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
            let (mut a, mut b) = (vec![0; 99], vec![0; 700_000]);
            read_exact_parts_at(&file, [&mut [], &mut a, &mut [], &mut b, &mut []], 7).unwrap();
            assert!(a == bytes[7..106] && b == bytes[106..700_106]);
        }
        let past = read_exact_at(&file, &mut [0; 10], bytes.len() as u64 - 9).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
        let parts = [&mut [0; 4][..], &mut [0; 6]];
        let past = read_exact_parts_at(&file, parts, bytes.len() as u64 - 9).unwrap_err();
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
