//! The server with one ring: each connection has one operation under way, and whole packets are waited for.

use crate::{Load, Work};
use anyhow::{Result, bail};
use io_uring::{IoUring, opcode, squeue, types::Fd};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Bytes of the socket.
    Receive,
    /// A packet that goes to the file.
    Write,
    /// A packet that comes from the file.
    Read,
    Send,
}

struct Connection {
    socket: TcpStream,
    file: File,
    buffer: Vec<u8>,
    step: Step,
    /// Bytes of the step that are done.
    done: usize,
    packets: usize,
}

pub fn serve(load: &Load, sockets: Vec<TcpStream>, files: Vec<File>) -> Result<()> {
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(64)?;
    let step = first_step(load);
    // What a ring that has failed may still write to is never freed.
    let mut connections: ManuallyDrop<Vec<Connection>> = ManuallyDrop::new(
        sockets
            .into_iter()
            .zip(files)
            .map(|(socket, file)| Connection {
                socket,
                file,
                buffer: vec![0; load.packet],
                step,
                done: 0,
                packets: 0,
            })
            .collect(),
    );
    for (i, connection) in connections.iter_mut().enumerate() {
        push(&mut ring, connection.operation(load, i))?;
    }
    let mut left = connections.len();
    while left > 0 {
        ring.submit_and_wait(1)?;
        let ended: Vec<(usize, i32)> =
            ring.completion().map(|entry| (entry.user_data() as usize, entry.result())).collect();
        for (i, result) in ended {
            let connection = &mut connections[i];
            if result <= 0 {
                bail!("{:?}: {}", connection.step, std::io::Error::from_raw_os_error(-result));
            }
            connection.advance(load, result as usize);
            if connection.packets == load.packets {
                left -= 1;
            } else {
                push(&mut ring, connection.operation(load, i))?;
            }
        }
    }
    drop(ManuallyDrop::into_inner(connections));
    Ok(())
}

/// What begins a packet.
fn first_step(load: &Load) -> Step {
    if load.work == Work::Send { Step::Read } else { Step::Receive }
}

fn push(ring: &mut IoUring, entry: squeue::Entry) -> Result<()> {
    // SAFETY: the connection's buffer, socket and file live until its operation has ended, of which there is one at a
    // time, or for ever.
    unsafe { ring.submission().push(&entry)? };
    Ok(())
}

impl Connection {
    /// Bytes of the step at hand.
    fn len(&self, load: &Load) -> usize {
        if self.step == Step::Receive && load.work == Work::Ask { 8 } else { load.packet }
    }

    fn operation(&mut self, load: &Load, number: usize) -> squeue::Entry {
        let (socket, file) = (Fd(self.socket.as_raw_fd()), Fd(self.file.as_raw_fd()));
        let len = (self.len(load) - self.done) as u32;
        let at = match load.work {
            Work::Ask => load.place(self.packets),
            _ => (self.packets * load.packet) as u64,
        } + self.done as u64;
        let whole = libc::MSG_WAITALL;
        let room = self.buffer[self.done..].as_mut_ptr();
        let entry = match self.step {
            Step::Receive => opcode::Recv::new(socket, room, len).flags(whole).build(),
            Step::Write => opcode::Write::new(file, room, len).offset(at).build(),
            Step::Read => opcode::Read::new(file, room, len).offset(at).build(),
            Step::Send => opcode::Send::new(socket, room, len).flags(whole).build(),
        };
        entry.user_data(number as u64)
    }

    /// Goes on after `count` bytes of the step.
    fn advance(&mut self, load: &Load, count: usize) {
        self.done += count;
        if self.done < self.len(load) {
            return;
        }
        self.done = 0;
        self.step = match (load.work, self.step) {
            (Work::Receive, Step::Receive) => Step::Write,
            (Work::Receive, _) => Step::Receive,
            (Work::Send, Step::Read) => Step::Send,
            (Work::Send, _) => Step::Read,
            (Work::Ask, Step::Receive) => Step::Read,
            (Work::Ask, Step::Read) => Step::Send,
            (Work::Ask, _) => Step::Receive,
        };
        if self.step == first_step(load) {
            self.packets += 1;
        }
    }
}
