//! What members say of themselves, and who is believed.

use cairn_quorum::encoding::{Decoder, put_bytes, put_u64};
use cairn_quorum::{Malformed, MemberId, NAME_LEN_MAX};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a member says of itself, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// What the configuration calls it.
    pub name: String,
    /// Who it is.
    pub id: MemberId,
    /// The number that was drawn for its quorum; 0 if it is in none yet.
    pub quorum: u64,
    /// It has a log, or is new.
    pub has_log: bool,
    /// It wants a snapshot, or goes on without.
    pub wants: bool,
    /// It would serve well if it led.
    pub is_ready: bool,
    /// A number of what commands obey by its configuration, the same for what is the same.
    pub settings: u64,
}

impl Hello {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.has_log, self.wants, self.is_ready].map(u8::from));
        put_u64(out, self.id.0);
        put_u64(out, self.quorum);
        put_u64(out, self.settings);
        put_bytes(out, self.name.as_bytes());
    }

    pub fn decode(input: &mut Decoder<'_>) -> Result<Hello, Malformed> {
        let (has_log, wants, is_ready) = (input.flag()?, input.flag()?, input.flag()?);
        let (id, quorum, settings) = (MemberId::decode(input)?, input.u64()?, input.u64()?);
        let name = input.text(NAME_LEN_MAX)?;
        Ok(Hello { name, id, quorum, has_log, wants, is_ready, settings })
    }
}

/// What there is to say of the member of this process, now.
#[derive(Debug)]
pub(super) struct Own {
    name: String,
    id: MemberId,
    quorum: AtomicU64,
    has_log: AtomicBool,
    is_behind: AtomicBool,
    is_ready: AtomicBool,
    has_space: AtomicBool,
    settings: u64,
}

impl Own {
    /// Of one that is in that quorum; 0 if it is in none yet.
    pub fn new(name: String, id: MemberId, quorum: u64, settings: u64) -> Own {
        Own {
            name,
            id,
            quorum: quorum.into(),
            has_log: false.into(),
            is_behind: false.into(),
            is_ready: true.into(),
            has_space: true.into(),
            settings,
        }
    }

    pub fn hello(&self) -> Hello {
        let has_log = self.has_log.load(Ordering::SeqCst);
        Hello {
            name: self.name.clone(),
            id: self.id,
            quorum: self.quorum(),
            has_log,
            wants: !has_log || self.is_behind.load(Ordering::SeqCst),
            is_ready: self.is_ready.load(Ordering::SeqCst) && self.has_space(),
            settings: self.settings,
        }
    }

    /// Whether there is space on its disks.
    pub fn has_space(&self) -> bool {
        self.has_space.load(Ordering::SeqCst)
    }

    /// Which quorum it is in; 0 if in none yet.
    pub fn quorum(&self) -> u64 {
        self.quorum.load(Ordering::SeqCst)
    }

    /// Whether who says that is of the same quorum, or one of the two is of none yet: the key alone may be that of several.
    pub fn believes(&self, hello: &Hello) -> bool {
        let own = self.quorum();
        own == 0 || hello.quorum == 0 || own == hello.quorum
    }

    /// It has a log, of that quorum.
    pub fn joins(&self, quorum: u64) {
        self.quorum.store(quorum, Ordering::SeqCst);
        self.has_log.store(true, Ordering::SeqCst);
    }

    /// Whether it needs a snapshot though it has a log.
    pub fn is_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::SeqCst);
    }

    /// Whether there is space on its disks, from now on.
    pub fn set_space(&self, has_space: bool) {
        self.has_space.store(has_space, Ordering::SeqCst);
    }

    /// Whether it would serve well if it led, with space on its disks.
    pub fn is_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::SeqCst);
    }
}
