//! On whose behalf commands run and questions are asked.

use std::fmt;
use std::sync::Arc;

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};

/// On whose behalf a command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The effective user's name.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Whether permissions do not bind: the NameNode's own user or a member of the superuser group.
    pub superuser: bool,
    /// Who says what a caller may do whom permissions bind.
    pub rights: Rights,
}

impl Caller {
    /// The NameNode itself, for commands that no client sent.
    pub fn system() -> Caller {
        Caller { superuser: true, ..Caller::default() }
    }
}

/// Who says what a caller may do with files and directories.
#[derive(Clone, Default)]
pub enum Rights {
    /// Owners, modes and access control lists.
    #[default]
    Modes,
    /// Somebody else, and these where that says nothing.
    Judged(Arc<dyn Judge>),
    /// Somebody else has said: it is an entry of the log, which was let in.
    Settled,
}

/// What somebody else says of a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Allowed,
    /// It is not.
    Denied,
    /// Owners, modes and access control lists are to be asked.
    Open,
}

/// Says what one caller may do.
pub trait Judge: Send + Sync {
    /// Whether it has rights, as permission bits, at a path that is or would be of an owner.
    fn judge(&self, path: &str, owner: &str, rights: u16) -> Verdict;
}

impl Rights {
    /// Whether modes alone say it.
    pub(crate) fn are_modes(&self) -> bool {
        matches!(self, Rights::Modes)
    }

    /// What somebody else says.
    pub(crate) fn judge(&self, path: impl FnOnce() -> String, owner: &str, rights: u16) -> Verdict {
        match self {
            Rights::Modes => Verdict::Open,
            Rights::Settled => Verdict::Allowed,
            Rights::Judged(judge) => judge.judge(&path(), owner, rights),
        }
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rights::Modes => "Modes",
            Rights::Judged(_) => "Judged",
            Rights::Settled => "Settled",
        })
    }
}

/// What a log has of them is the same.
impl PartialEq for Rights {
    fn eq(&self, other: &Rights) -> bool {
        self.are_modes() == other.are_modes()
    }
}

impl Eq for Rights {}

/// A bit of the byte that says what binds the caller.
const SUPERUSER: u8 = 1;
const IS_JUDGED: u8 = 2;

impl Encode for Caller {
    fn encode(&self, out: &mut Encoder) {
        self.user.encode(out);
        self.groups.encode(out);
        let judged = if self.rights.are_modes() { 0 } else { IS_JUDGED };
        out.byte(u8::from(self.superuser) | judged);
    }
}

impl Decode for Caller {
    fn decode(input: &mut Decoder<'_>) -> Result<Caller, DecodeError> {
        let (user, groups) = (Decode::decode(input)?, Decode::decode(input)?);
        let (superuser, rights) = match input.byte()? {
            0 => (false, Rights::Modes),
            SUPERUSER => (true, Rights::Modes),
            IS_JUDGED => (false, Rights::Settled),
            value => {
                return Err(DecodeError::Invalid { what: "caller", value: value.into() });
            }
        };
        Ok(Caller { user, groups, superuser, rights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct No;

    impl Judge for No {
        fn judge(&self, _: &str, _: &str, _: u16) -> Verdict {
            Verdict::Denied
        }
    }

    #[test]
    fn a_log_tells_who_was_judged_and_asks_nobody_again() {
        let read = |caller: &Caller| {
            let mut out = Encoder::new();
            caller.encode(&mut out);
            let bytes = out.into_bytes();
            (Caller::decode(&mut Decoder::new(&bytes)).unwrap(), bytes)
        };
        let plain = Caller { user: "ann".to_owned(), ..Caller::default() };
        assert_eq!(read(&plain).0, plain);
        assert_eq!(read(&Caller::system()).0, Caller::system());
        let judged = Caller { rights: Rights::Judged(Arc::new(No)), ..plain.clone() };
        let (again, mut bytes) = read(&judged);
        assert_eq!(again, judged);
        assert_eq!(again.rights.judge(String::new, "", 7), Verdict::Allowed);
        assert_eq!(judged.rights.judge(String::new, "", 7), Verdict::Denied);
        *bytes.last_mut().unwrap() = 4;
        assert!(Caller::decode(&mut Decoder::new(&bytes)).is_err());
    }
}
