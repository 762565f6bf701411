//! A store's file that is looked at and stays as it is: what redb writes when it opens one stays in memory.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

use cairn_process::held::held;

/// Bytes that are kept together.
const BLOCK: u64 = 4096;

/// A file, and what would have been written to it.
#[derive(Debug)]
pub(super) struct Unwritten<F> {
    file: F,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    len: u64,
    /// Bytes of the file that count still.
    file_len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl<F: StorageBackend> Unwritten<F> {
    /// A file of so many bytes.
    pub(super) fn new(file: F, len: u64) -> Unwritten<F> {
        let changes = Changes { len, file_len: len, blocks: BTreeMap::new() };
        Unwritten { file, changes: Mutex::new(changes) }
    }

    /// Bytes of the file itself; zeros behind its end.
    fn read_file(&self, offset: u64, out: &mut [u8], file_len: u64) -> io::Result<()> {
        let there = file_len.saturating_sub(offset).min(out.len() as u64) as usize;
        let (old, new) = out.split_at_mut(there);
        new.fill(0);
        if old.is_empty() { Ok(()) } else { self.file.read(offset, old) }
    }
}

/// The part of a range of bytes that is in a block, as places in the range and in the block.
fn part(offset: u64, len: usize, block: u64) -> (Range<usize>, Range<usize>) {
    let begin = offset.max(block * BLOCK);
    let end = (offset + len as u64).min((block + 1) * BLOCK);
    let (in_range, in_block) = (begin - offset, begin - block * BLOCK);
    let len = (end - begin) as usize;
    (in_range as usize..in_range as usize + len, in_block as usize..in_block as usize + len)
}

fn blocks(offset: u64, len: usize) -> Range<u64> {
    offset / BLOCK..(offset + len as u64).div_ceil(BLOCK)
}

impl<F: StorageBackend> StorageBackend for Unwritten<F> {
    fn len(&self) -> io::Result<u64> {
        Ok(held(&self.changes).len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = held(&self.changes);
        self.read_file(offset, out, changes.file_len)?;
        for (block, bytes) in changes.blocks.range(blocks(offset, out.len())) {
            let (in_range, in_block) = part(offset, out.len(), *block);
            out[in_range].copy_from_slice(&bytes[in_block]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = held(&self.changes);
        changes.len = len;
        changes.file_len = changes.file_len.min(len);
        changes.blocks.split_off(&len.div_ceil(BLOCK));
        if let Some(last) = changes.blocks.get_mut(&(len / BLOCK)) {
            last[(len % BLOCK) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = held(&self.changes);
        changes.len = changes.len.max(offset + data.len() as u64);
        for block in blocks(offset, data.len()) {
            let (in_range, in_block) = part(offset, data.len(), block);
            let mut bytes = match changes.blocks.remove(&block) {
                Some(bytes) => bytes,
                // All of it is written.
                None if in_block.len() as u64 == BLOCK => vec![0; BLOCK as usize],
                None => {
                    let mut bytes = vec![0; BLOCK as usize];
                    self.read_file(block * BLOCK, &mut bytes, changes.file_len)?;
                    bytes
                }
            };
            bytes[in_block].copy_from_slice(&data[in_range]);
            changes.blocks.insert(block, bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..20_000u64, prop::collection::vec(any::<u8>(), 1..9000))
                .prop_map(|(at, bytes)| Step::Write(at, bytes)),
            1 => (0..30_000u64).prop_map(Step::SetLen),
        ]
    }

    proptest! {
        #[test]
        fn it_reads_as_if_it_were_written_and_the_file_stays(
            before in prop::collection::vec(any::<u8>(), 0..20_000),
            steps in prop::collection::vec(step(), 0..12),
        ) {
            let file = InMemoryBackend::new();
            file.set_len(before.len() as u64).unwrap();
            file.write(0, &before).unwrap();
            let mut model = before.clone();
            let unwritten = Unwritten::new(file, before.len() as u64);
            for step in steps {
                match step {
                    Step::Write(at, bytes) => {
                        let end = at as usize + bytes.len();
                        model.resize(model.len().max(end), 0);
                        model[at as usize..end].copy_from_slice(&bytes);
                        unwritten.write(at, &bytes).unwrap();
                    }
                    Step::SetLen(len) => {
                        model.resize(len as usize, 0);
                        unwritten.set_len(len).unwrap();
                    }
                }
                prop_assert_eq!(unwritten.len().unwrap(), model.len() as u64);
                let mut read = vec![1; model.len()];
                unwritten.read(0, &mut read).unwrap();
                prop_assert!(read == model);
            }
            let mut read = vec![1; before.len()];
            unwritten.file.read(0, &mut read).unwrap();
            prop_assert!(read == before);
        }
    }
}
