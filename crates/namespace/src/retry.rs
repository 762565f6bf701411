//! Outcomes of calls that a client may send again after it lost the answer.
//!
//! They are in memory. After a restart those that came since the store was last brought up to date come out of the
//! log's entries once more, the others out of the store: table `outcome`, batch number (8 bytes, big endian) -> version
//! byte, then outcomes in the order in which they came, each client id (16), call number (4, big endian), time of
//! expiry (elapsed), length, [`Outcome`]. So a call costs the store a few bytes, and no record of its own.
//!
//! They are kept for a while, and so many at most; which of them go follows from the log alone.
//! Only calls that succeeded are kept: one that failed changed nothing and can be tried anew.
//!
//! Source: Hadoop 3.5.0 `RetryCache`, `LightWeightCache`.

use crate::command::{CallId, Entry};
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_struct, from_record};
use crate::error::Result;
use crate::outcome::Outcome;
use crate::settings::{self, Settings};
use crate::store::{StoreError, StoreRead, Table};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// Outcomes that one new one removes at most, so that there are fewer without a pause.
const FORGOTTEN_PER_ENTRY: usize = 4;

/// A batch that is this long is closed, in bytes: with its key it fits in a page of the store's file.
const BATCH_LEN: usize = 28 << 10;

/// Outcomes that came one after the other.
#[derive(Clone, Debug, Default)]
struct Batch {
    number: u64,
    bytes: Vec<u8>,
    /// Where those begin that are not forgotten.
    from: usize,
    /// What was saved does not grow.
    is_saved: bool,
}

/// Where an outcome is. Batches that are kept at the same time have other numbers in 32 bits, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    batch: u32,
    offset: u32,
}

/// An outcome as it lies in a batch.
struct Kept<'a> {
    call: CallId,
    expires_ms: u64,
    outcome: &'a [u8],
}

impl<'a> Kept<'a> {
    fn read(input: &mut Decoder<'a>) -> std::result::Result<Kept<'a>, DecodeError> {
        let call = CallId {
            client_id: Decode::decode(input)?,
            call_id: i32::from_be_bytes(Decode::decode(input)?),
        };
        Ok(Kept { call, expires_ms: Decode::decode(input)?, outcome: input.bytes()? })
    }

    fn write(&self, out: &mut Encoder) {
        out.raw(&self.call.client_id);
        out.raw(&self.call.call_id.to_be_bytes());
        self.expires_ms.encode(out);
        out.bytes(self.outcome);
    }
}

/// What older builds had in a record of its own in table `retry`, whose key was client id and call number.
struct Former {
    expires_ms: u64,
    outcome: Outcome,
}

encode_struct!(Former { expires_ms, outcome });

fn damaged(reason: String) -> StoreError {
    StoreError::Corrupt { what: "outcomes of calls", reason }
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut out = Encoder::new();
    value.encode(&mut out);
    out.into_bytes()
}

/// A record of table `outcome` to write, or to remove.
pub type Record = ([u8; 8], Option<Vec<u8>>);

/// The outcomes that are kept.
#[derive(Clone, Debug, Default)]
pub struct Retries {
    /// The oldest first, with numbers without gaps.
    batches: VecDeque<Batch>,
    next: u64,
    places: BTreeMap<CallId, Place>,
    /// Outcomes in the batches.
    count: u64,
    /// Batches that are in the store and not needed there any more.
    gone: Vec<u64>,
}

impl Retries {
    /// Those that the store has.
    pub fn load(store: &dyn StoreRead) -> Result<Retries> {
        let mut retries = Retries::default();
        let mut failed = Ok(());
        store.scan(Table::Outcome, &[], &[], &mut |key, value| {
            failed = retries.take_in(key, value);
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failed?;
        // A batch is saved once, and may have some that were forgotten since.
        let settings = settings::get(store)?;
        let most = most(&settings);
        while retries.count > most {
            retries.forget_oldest()?;
        }
        Ok(retries)
    }

    /// Those that an older build has kept, in any order.
    pub fn from_former(records: &[(Vec<u8>, Vec<u8>)]) -> Result<Retries> {
        let mut former = Vec::new();
        for (key, record) in records {
            let mut input = Decoder::new(key);
            let client_id = Decode::decode(&mut input)?;
            let call_id = i32::from_be_bytes(Decode::decode(&mut input)?);
            let kept: Former = from_record(VERSION, record)?;
            former.push((CallId { client_id, call_id }, kept));
        }
        former.sort_by_key(|(_, kept)| kept.expires_ms);
        let mut retries = Retries::default();
        for (call, kept) in former {
            retries.push(call, kept.expires_ms, &kept.outcome);
        }
        Ok(retries)
    }

    fn take_in(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let number = <[u8; 8]>::try_from(key).map(u64::from_be_bytes);
        let number = number.map_err(|_| damaged(format!("a key of {} bytes", key.len())))?;
        if !self.batches.is_empty() && number != self.next {
            return Err(damaged(format!("batch {} is missing", self.next)).into());
        }
        let mut input = Decoder::new(value);
        let version = input.byte()?;
        if version != VERSION {
            return Err(DecodeError::Version { version }.into());
        }
        let bytes = value[1..].to_vec();
        while input.remaining() > 0 {
            let offset = (bytes.len() - input.remaining()) as u32;
            let call = Kept::read(&mut input)?.call;
            self.places.insert(call, Place { batch: number as u32, offset });
            self.count += 1;
        }
        self.batches.push_back(Batch { number, bytes, from: 0, is_saved: true });
        self.next = number + 1;
        Ok(())
    }

    fn at(&self, place: Place) -> Result<Kept<'_>> {
        let first = self.batches.front().map_or(0, |batch| batch.number as u32);
        let batch = self.batches.get(place.batch.wrapping_sub(first) as usize);
        let bytes = batch.and_then(|batch| batch.bytes.get(place.offset as usize..));
        Ok(Kept::read(&mut Decoder::new(bytes.unwrap_or_default()))?)
    }

    /// The outcome of a call, if it is still kept.
    fn of(&self, call: CallId, elapsed_ms: u64) -> Result<Option<Kept<'_>>> {
        let Some(place) = self.places.get(&call) else { return Ok(None) };
        Ok(Some(self.at(*place)?).filter(|kept| elapsed_ms < kept.expires_ms))
    }

    /// Whether the outcome of a call is still kept.
    pub fn knows(&self, call: CallId, elapsed_ms: u64) -> Result<bool> {
        Ok(self.of(call, elapsed_ms)?.is_some())
    }

    /// The outcome of an entry that came before. Such a one is neither applied nor logged.
    pub fn find(&self, entry: &Entry) -> Result<Option<Outcome>> {
        let Some(call) = entry.once() else { return Ok(None) };
        let Some(kept) = self.of(call, entry.elapsed_ms)? else { return Ok(None) };
        let mut input = Decoder::new(kept.outcome);
        let outcome = Decode::decode(&mut input)?;
        input.finish()?;
        Ok(Some(outcome))
    }

    /// Keeps the outcome of an entry that was applied, if it may come again, and drops some that have expired, or the
    /// oldest where there are too many.
    pub fn remember(
        &mut self,
        entry: &Entry,
        settings: &Settings,
        outcome: &Outcome,
    ) -> Result<()> {
        let Some(call) = entry.once() else { return Ok(()) };
        let most = most(settings);
        for _ in 0..FORGOTTEN_PER_ENTRY {
            let is_due = match self.oldest()? {
                Some(oldest) => oldest.expires_ms < entry.elapsed_ms || self.count >= most,
                None => false,
            };
            if !is_due {
                break;
            }
            self.forget_oldest()?;
        }
        let expires_ms = entry.elapsed_ms.saturating_add(settings.retry_expiry_ms);
        self.push(call, expires_ms, outcome);
        Ok(())
    }

    fn push(&mut self, call: CallId, expires_ms: u64, outcome: &Outcome) {
        let is_open = |batch: &Batch| !batch.is_saved && batch.bytes.len() < BATCH_LEN;
        if !self.batches.back().is_some_and(is_open) {
            // A long one whose outcomes have all been forgotten.
            self.batches.retain(|batch| batch.is_saved || batch.from < batch.bytes.len());
            self.batches.push_back(Batch { number: self.next, ..Batch::default() });
            self.next += 1;
        }
        let Some(batch) = self.batches.back_mut() else { return };
        let place = Place { batch: batch.number as u32, offset: batch.bytes.len() as u32 };
        let mut out = Encoder::onto(std::mem::take(&mut batch.bytes));
        Kept { call, expires_ms, outcome: &encoded(outcome) }.write(&mut out);
        batch.bytes = out.into_bytes();
        self.places.insert(call, place);
        self.count += 1;
    }

    fn oldest(&self) -> Result<Option<Kept<'_>>> {
        let Some(batch) = self.batches.front().filter(|batch| batch.from < batch.bytes.len())
        else {
            return Ok(None);
        };
        Ok(Some(Kept::read(&mut Decoder::new(&batch.bytes[batch.from..]))?))
    }

    fn forget_oldest(&mut self) -> Result<()> {
        let Some(batch) = self.batches.front_mut() else { return Ok(()) };
        let place = Place { batch: batch.number as u32, offset: batch.from as u32 };
        let mut input = Decoder::new(&batch.bytes[batch.from..]);
        let call = Kept::read(&mut input)?.call;
        batch.from = batch.bytes.len() - input.remaining();
        // The same call may have come again since, and was carried out anew.
        if self.places.get(&call) == Some(&place) {
            self.places.remove(&call);
        }
        self.count -= 1;
        let is_spent = batch.from == batch.bytes.len();
        if is_spent && (batch.is_saved || self.batches.len() > 1) {
            let spent = self.batches.pop_front().filter(|batch| batch.is_saved);
            self.gone.extend(spent.map(|batch| batch.number));
        }
        Ok(())
    }

    /// How many there are, those that have expired and were not dropped yet among them.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What is to be written so that [`Retries::load`] finds all that were remembered up to now.
    pub fn save(&mut self) -> Vec<Record> {
        let gone = std::mem::take(&mut self.gone);
        let mut records: Vec<Record> =
            gone.into_iter().map(|number| (number.to_be_bytes(), None)).collect();
        for batch in self.batches.iter_mut().rev() {
            if batch.is_saved {
                break;
            }
            let kept = &batch.bytes[batch.from..];
            if !kept.is_empty() {
                let value = [&[VERSION], kept].concat();
                records.push((batch.number.to_be_bytes(), Some(value)));
                batch.is_saved = true;
            }
        }
        records
    }
}

fn most(settings: &Settings) -> u64 {
    match settings.retry_entries_max {
        0 => u64::MAX,
        most => most,
    }
}
