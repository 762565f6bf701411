//! The server with epoll, and calls that do not wait.

use crate::{Load, Work};
use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

struct Connection {
    socket: TcpStream,
    file: File,
    buffer: Vec<u8>,
    /// Bytes of the packet that were received or sent, of the question before them.
    done: usize,
    asked: usize,
    question: [u8; 8],
    packets: usize,
}

pub fn serve(load: &Load, sockets: Vec<TcpStream>, files: Vec<File>) -> Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut connections: Vec<Connection> = Vec::new();
    for (i, (socket, file)) in sockets.into_iter().zip(files).enumerate() {
        socket.set_nonblocking(true)?;
        if load.work == Work::Receive {
            low_water(&socket, 128 << 10)?;
        }
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&epoll, &socket, EventData::new_u64(i as u64), flags)?;
        let buffer = vec![0; load.packet];
        let (done, asked, packets) = (0, 0, 0);
        let question = [0; 8];
        connections.push(Connection { socket, file, buffer, done, asked, question, packets });
    }
    let mut left = connections.len();
    let mut events = Vec::with_capacity(64);
    while left > 0 {
        events.clear();
        retry_on_intr(|| epoll::wait(&epoll, spare_capacity(&mut events), None))?;
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            if connection.packets < load.packets && connection.go_on(load)? {
                left -= 1;
            }
        }
    }
    Ok(())
}

/// Has a reader woken when so many bytes are there.
fn low_water(socket: &TcpStream, bytes: libc::c_int) -> Result<()> {
    let len = size_of::<libc::c_int>() as u32;
    // SAFETY: the kernel reads the `len` bytes of `bytes`.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            len,
        )
    };
    if set == 0 { Ok(()) } else { Err(Error::last_os_error().into()) }
}

impl Connection {
    /// Does what it can without waiting; true when all packets are done.
    fn go_on(&mut self, load: &Load) -> Result<bool> {
        while self.packets < load.packets {
            let end = self.packets * load.packet;
            let done = match load.work {
                Work::Receive => self.socket.read(&mut self.buffer[self.done..]),
                Work::Ask if self.asked < 8 => {
                    match self.socket.read(&mut self.question[self.asked..]) {
                        Ok(count) if count > 0 => {
                            self.asked += count;
                            if self.asked == 8 {
                                let at = u64::from_le_bytes(self.question);
                                self.file.read_exact_at(&mut self.buffer, at)?;
                            }
                            continue;
                        }
                        ended => ended,
                    }
                }
                Work::Ask => self.socket.write(&self.buffer[self.done..]),
                Work::Send => {
                    if self.done == 0 {
                        self.file.read_exact_at(&mut self.buffer, end as u64)?;
                    }
                    self.socket.write(&self.buffer[self.done..])
                }
            };
            match done {
                Ok(0) => return Err(Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(count) => self.done += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
            if self.done == load.packet {
                if load.work == Work::Receive {
                    self.file.write_all_at(&self.buffer, end as u64)?;
                }
                (self.done, self.asked) = (0, 0);
                self.packets += 1;
            }
        }
        Ok(true)
    }
}
