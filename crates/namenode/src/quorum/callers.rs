//! The connections that others have made: a bounded number, of strangers another one.

use cairn_process::held::held;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;

/// Connections that members have made, at most.
const CONNECTIONS_MAX: usize = 64;

/// Those of whoever has not shown yet that it is a member, at most: the oldest makes room for the next, as a member needs no
/// time to speak of.
const STRANGERS_MAX: usize = 32;

/// See the module.
#[derive(Default)]
pub(super) struct Callers {
    /// By their numbers, which go up.
    all: BTreeMap<u64, Open>,
    next: u64,
}

struct Open {
    stream: TcpStream,
    is_member: bool,
}

impl Callers {
    /// Somebody has connected. If there are too many who have not shown who they are, the first of them goes.
    pub fn enter<'a>(callers: &'a Mutex<Callers>, stream: &TcpStream) -> io::Result<Caller<'a>> {
        let stream = stream.try_clone()?;
        let mut open = held(callers);
        let strangers = open.all.iter().filter(|(_, open)| !open.is_member);
        let (first, count) =
            (strangers.clone().next().map(|(number, _)| *number), strangers.count());
        if let Some(first) = first.filter(|_| count >= STRANGERS_MAX) {
            open.close(first);
        }
        let number = open.next;
        open.next += 1;
        open.all.insert(number, Open { stream, is_member: false });
        Ok(Caller { callers, number })
    }

    fn close(&mut self, number: u64) {
        if let Some(Open { stream, .. }) = self.all.remove(&number) {
            // Who has gone is not there to be told.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Closes all.
    pub fn close_all(&mut self) {
        while let Some(number) = self.all.keys().next().copied() {
            self.close(number);
        }
    }
}

/// One of them; it is closed when this is dropped.
pub(super) struct Caller<'a> {
    callers: &'a Mutex<Callers>,
    number: u64,
}

impl Caller<'_> {
    /// It has shown that it is a member. Fails if there are too many connections of these, or it has had to go.
    pub fn is_member(&self) -> io::Result<()> {
        let mut open = held(self.callers);
        let members = open.all.values().filter(|open| open.is_member).count();
        match open.all.get_mut(&self.number) {
            Some(caller) if members < CONNECTIONS_MAX => caller.is_member = true,
            Some(_) | None => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        Ok(())
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        held(self.callers).close(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn the_oldest_stranger_makes_room_and_members_stay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let callers = Mutex::default();
        let enter = || {
            let theirs = TcpStream::connect(addr).unwrap();
            let ours = listener.accept().unwrap().0;
            (Callers::enter(&callers, &ours).unwrap(), theirs)
        };
        let is_closed = |mut theirs: &TcpStream| {
            theirs.set_nonblocking(true).unwrap();
            theirs.read(&mut [0]).is_ok_and(|count| count == 0)
        };
        let (member, to_member) = enter();
        member.is_member().unwrap();
        let strangers: Vec<_> = (0..STRANGERS_MAX).map(|_| enter()).collect();
        assert!(!is_closed(&strangers[0].1));
        let last = enter();
        assert!(is_closed(&strangers[0].1) && strangers[0].0.is_member().is_err());
        assert!(!is_closed(&strangers[1].1) && !is_closed(&to_member));
        last.0.is_member().unwrap();
        drop(member);
        assert!(is_closed(&to_member));
        let members: Vec<_> = (1..CONNECTIONS_MAX)
            .map(|_| {
                let member = enter();
                member.0.is_member().unwrap();
                member
            })
            .collect();
        assert!(enter().0.is_member().is_err());
        drop((strangers, last, members));
        assert!(held(&callers).all.is_empty());
    }
}
