//! An fsimage of any size, and how long it takes to judge it.
//!
//! ```text
//! image write FILE INODES     writes one as Hadoop 3.5 would, a tenth of it directories
//! image read FILE             judges it, and prints seconds and the most memory that was used
//! ```

use cairn_advise::census::Asked;
use cairn_advise::image;
use cairn_fsimage::{Image, ROOT};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

const LAYOUT: i32 = -67;
const BLOCK_LEN: u64 = 128 << 20;
/// Inodes of which one is a directory.
const FILES_EACH: u64 = 10;
/// Directories in a directory.
const FAN: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", file, inodes] => write(file, inodes.parse()?),
        ["read", file] => read(file),
        _ => Err("image write FILE INODES | image read FILE".into()),
    }
}

fn read(file: &str) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let mut image = Image::open(File::open(file)?)?;
    let (census, counts) = image::read(&mut image, Asked::new(1_795_000_000_000))?;
    let walked = begun.elapsed();
    let found = census.end();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "{} inodes, {} rows, {} bytes of files: {:.1} s, of which reading {:.1} s; {peak}",
        counts.inodes,
        found.rows.len(),
        found.total.bytes,
        begun.elapsed().as_secs_f64(),
        walked.as_secs_f64()
    );
    Ok(())
}

/// A message of protobuf.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, number: u64) -> Message {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn fixed64(mut self, field: u64, number: u64) -> Message {
        self.varint(field << 3 | 1);
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }
}

/// Writes sections and notes where they are.
struct Writer {
    out: BufWriter<File>,
    at: u64,
    begun: u64,
    summary: Message,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn message(&mut self, message: &Message) -> std::io::Result<()> {
        let mut len = Message::default();
        len.varint(message.0.len() as u64);
        self.put(&len.0)?;
        self.put(&message.0)
    }

    fn end_section(&mut self, name: &str) {
        let place = Message::default()
            .bytes(1, name.as_bytes())
            .number(2, self.at - self.begun)
            .number(3, self.begun);
        self.summary = std::mem::take(&mut self.summary).bytes(4, &place.0);
        self.begun = self.at;
    }
}

fn write(file: &str, inodes: u64) -> Result<(), Box<dyn Error>> {
    let summary = Message::default().number(1, 1).number(2, u64::from(LAYOUT as u32));
    let out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    let mut image = Writer { out, at: 0, begun: 8, summary };
    image.put(b"HDFSIMG1")?;
    let last = ROOT + inodes - 1;
    let counters = Message::default().number(1, 1).number(3, 1001).number(5, 1 << 40).number(6, 1);
    image.message(&counters)?;
    image.end_section("NS_INFO");
    image.message(&Message::default().number(1, last).number(2, inodes))?;
    let permission = 1 << 40 | 1 << 16 | 0o755;
    let (mut block, mut dice) = ((1 << 30) + 1, 1u64);
    for number in 0..inodes {
        let id = ROOT + number;
        if number % FILES_EACH == 0 {
            let directory = Message::default().number(1, 1_790_000_000_000).fixed64(4, permission);
            let name = match number {
                0 => String::new(),
                _ => format!("directory-{number}"),
            };
            let inode = Message::default().number(1, 2).number(2, id).bytes(3, name.as_bytes());
            image.message(&inode.bytes(5, &directory.0))?;
            continue;
        }
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // From a few bytes to some gigabytes, each order of magnitude as often.
        let len = (dice >> 33) % (1 << (8 + (dice >> 59) % 24));
        let mut inode = Message::default()
            .number(1, 3)
            .number(2, 1_700_000_000_000 + (dice >> 30) % 90_000_000_000)
            .number(3, 1_700_000_000_000 + (dice >> 29) % 90_000_000_000)
            .number(4, BLOCK_LEN)
            .fixed64(5, permission);
        let mut left = len;
        while left > 0 {
            let bytes = left.min(BLOCK_LEN);
            let entry = Message::default().number(1, block).number(2, 1001).number(3, bytes);
            inode = inode.bytes(6, &entry.0);
            (block, left) = (block + 1, left - bytes);
        }
        let name = format!("part-{number:08}.snappy.orc");
        let file = Message::default().number(1, 1).number(2, id).bytes(3, name.as_bytes());
        image.message(&file.bytes(4, &inode.number(10, 0).number(11, 0).0))?;
    }
    image.end_section("INODE");
    let directories = inodes.div_ceil(FILES_EACH);
    for directory in 0..directories {
        let first = directory * FILES_EACH;
        let mut children = Message::default();
        (first + 1..(first + FILES_EACH).min(inodes)).for_each(|file| children.varint(ROOT + file));
        let below = directory * FAN + 1..(directory * FAN + FAN + 1).min(directories);
        below.for_each(|other| children.varint(ROOT + other * FILES_EACH));
        let entry = Message::default().number(1, ROOT + first).bytes(2, &children.0);
        image.message(&entry)?;
    }
    image.end_section("INODE_DIR");
    image.message(&Message::default().number(1, 2).number(2, 3))?;
    for (number, name) in [(1 | 1 << 29, "hdfs"), (1 | 2 << 29, "supergroup")] {
        image.message(&Message::default().number(1, number).bytes(2, name.as_bytes()))?;
    }
    image.end_section("STRING_TABLE");
    let mut summary = Message::default();
    summary.varint(image.summary.0.len() as u64);
    summary.0.extend(&image.summary.0);
    let len = summary.0.len() as u32;
    image.put(&summary.0)?;
    image.put(&len.to_be_bytes())?;
    image.out.flush()?;
    println!("{file}: {inodes} inodes, {} bytes", image.at);
    Ok(())
}
