//! The socket under a connection: TCP, or a UNIX domain socket to a DataNode on this machine.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::BufMut;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// Most descriptors that one message passes.
pub(super) const MOST_FDS: usize = 2;

/// A connected socket.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Calls the same method of either socket.
macro_rules! either {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream) => $call,
        }
    };
}

impl Socket {
    pub(super) fn is_unix(&self) -> bool {
        matches!(self, Socket::Unix(_))
    }

    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.noting_end(into.len(), || either!(self, stream => stream.try_read(into)))
    }

    /// Reads up to `room` bytes, for which there is room in `into`.
    pub(super) fn try_read_buf(&self, into: &mut impl BufMut, room: usize) -> io::Result<usize> {
        let mut into = into.limit(room);
        self.noting_end(room, || either!(self, stream => stream.try_read_buf(&mut into)))
    }

    pub(super) fn try_read_vectored(&self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let room = parts.iter().map(|part| part.len()).sum();
        self.noting_end(room, || either!(self, stream => stream.try_read_vectored(parts)))
    }

    /// Reads. Where that leaves room, nothing more is there: the next read waits for news without a system call to
    /// be told so.
    fn noting_end(
        &self,
        room: usize,
        read: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut last = None;
        let read_or_drained = || match read()? {
            count if count > 0 && count < room => {
                last = Some(count);
                // So tokio forgets that the socket was readable, unless there has been news since.
                Err(io::ErrorKind::WouldBlock.into())
            }
            count => Ok(count),
        };
        let interest = Interest::READABLE;
        let done = either!(self, stream => stream.try_io(interest, read_or_drained));
        last.map_or(done, Ok)
    }

    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => stream.try_write_vectored(parts))
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        either!(self, stream => stream.readable().await)
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        either!(self, stream => stream.writable().await)
    }

    /// Runs a system call once the socket is ready for it, again when it was not.
    pub(super) async fn async_io<T>(
        &self,
        interest: Interest,
        call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        either!(self, stream => stream.async_io(interest, call).await)
    }

    /// The peer's address; a domain socket has none.
    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.peer_addr(),
            Socket::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Our end's address; a domain socket has none.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.local_addr(),
            Socket::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends one byte, and descriptors with it.
    pub(super) async fn send_fds(&self, byte: u8, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let call = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !control.push(SendAncillaryMessage::ScmRights(fds)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let data = [byte];
            let parts = [IoSlice::new(&data)];
            Ok(rustix::net::sendmsg(self.as_fd(), &parts, &mut control, SendFlags::NOSIGNAL)?)
        };
        self.async_io(Interest::WRITABLE, call).await.map(|_| ())
    }

    /// Receives one byte and the descriptors that came with it; `None` at the end of the stream.
    pub(super) async fn receive_fds(&self) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
        let call = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut data = [0];
            let mut parts = [IoSliceMut::new(&mut data)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let count = rustix::net::recvmsg(self.as_fd(), &mut parts, &mut control, flags)?.bytes;
            let mut fds = Vec::new();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(passed) = message {
                    fds.extend(passed);
                }
            }
            Ok((count > 0).then_some((data[0], fds)))
        };
        self.async_io(Interest::READABLE, call).await
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, stream => stream.as_fd())
    }
}
