//! On whose behalf commands run and questions are asked.

use crate::encoding::encode_struct;

/// On whose behalf a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The effective user's name.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Whether permissions do not bind: the NameNode's own user or a member of the superuser group.
    pub superuser: bool,
}

encode_struct!(Caller { user, groups, superuser });

impl Caller {
    /// The NameNode itself, for commands that no client sent.
    pub fn system() -> Caller {
        Caller { user: String::new(), groups: Vec::new(), superuser: true }
    }
}
