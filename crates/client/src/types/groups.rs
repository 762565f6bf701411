//! What is told of contiguous groups.

use std::ops::AddAssign;

/// What became of a file that was to be kept in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertedFile {
    /// It is kept so from now on.
    Done,
    /// It was kept so already.
    Same,
    /// It is striped: it takes a copy to convert it ([`crate::FileSystem::rewrite`]).
    Striped,
    /// There is no such file any more.
    Gone,
    /// It cannot be, and why.
    Refused(String),
}

/// What became of files, and how they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertedFiles {
    /// Of each file in their order; none if they were only looked at.
    pub outcomes: Vec<ConvertedFile>,
    /// How they are kept now, and how they will be.
    pub survey: LayoutSurvey,
}

/// How files are kept, and how they are once what is wanted of them is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayoutSurvey {
    /// Files that are not striped.
    pub files: u64,
    /// Those of them that are to be kept as is wanted.
    pub as_wanted: u64,
    /// Files that are striped.
    pub striped: u64,
    /// Bytes of these.
    pub striped_bytes: u64,
    /// Bytes of those that are not striped.
    pub bytes: u64,
    /// Bytes on disk of these, as quotas count them.
    pub space: u64,
    /// Bytes in groups of the policy that is wanted.
    pub grouped: u64,
    /// Bytes in groups that are, or would be, dissolved.
    pub leaving: u64,
    /// Bytes in no group that would be in one.
    pub to_group: u64,
    /// Bytes on disk then.
    pub space_then: u64,
}

impl AddAssign for LayoutSurvey {
    fn add_assign(&mut self, more: LayoutSurvey) {
        self.files += more.files;
        self.as_wanted += more.as_wanted;
        self.striped += more.striped;
        self.striped_bytes += more.striped_bytes;
        self.bytes += more.bytes;
        self.space += more.space;
        self.grouped += more.grouped;
        self.leaving += more.leaving;
        self.to_group += more.to_group;
        self.space_then += more.space_then;
    }
}

/// Work on contiguous groups that can be held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupWork {
    /// Making groups.
    Form,
    /// Deleting replicas that groups do not need.
    Drop,
    /// Making groups anew that have dead members.
    Renew,
    /// Conversion of files.
    Convert,
}

impl GroupWork {
    /// All kinds.
    pub const ALL: [GroupWork; 4] =
        [GroupWork::Form, GroupWork::Drop, GroupWork::Renew, GroupWork::Convert];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            GroupWork::Form => "form",
            GroupWork::Drop => "drop",
            GroupWork::Renew => "renew",
            GroupWork::Convert => "convert",
        }
    }
}

/// What contiguous groups come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    /// What is held back.
    pub paused: Vec<GroupWork>,
    /// How long ago groups and what waits was counted, in ms; none if it was not since the NameNode's start.
    pub counted_ms_ago: Option<u64>,
    /// Groups.
    pub groups: u64,
    /// Bytes of their members that files have.
    pub grouped_bytes: u64,
    /// Bytes of their members that no file has.
    pub dead_bytes: u64,
    /// Bytes of their parities.
    pub parity_bytes: u64,
    /// Those of them that are being dissolved.
    pub dissolving: u64,
    /// Blocks that wait for a group and have all their copies.
    pub waiting_blocks: u64,
    /// Their bytes, once.
    pub waiting_bytes: u64,
    /// Those of them that were quiet for long enough.
    pub due_blocks: u64,
    /// Their bytes, once.
    pub due_bytes: u64,
    /// For how long the first of those could have been grouped, in ms.
    pub oldest_due_ms: u64,
    /// Groups that are being made.
    pub attempts: u64,
    /// Groups with more replicas than they need.
    pub with_surplus: u64,
    /// Groups formed since the NameNode's start.
    pub formed: u64,
    /// Attempts that came to nothing since then.
    pub abandoned: u64,
    /// Groups with dead members of which others are made, or that are dissolved, since then.
    pub renewed: u64,
    /// Containers of small blocks.
    pub containers: u64,
    /// Small blocks that are packed in them.
    pub packed_blocks: u64,
    /// Their bytes.
    pub packed_bytes: u64,
    /// Bytes in containers that no block has any more.
    pub dead_packed_bytes: u64,
    /// Packed blocks of which copies are still to be deleted.
    pub packed_with_copies: u64,
    /// Bytes of groups of containers, with their parities.
    pub container_space: u64,
    /// Containers whose blocks go into others, for what is dead in them.
    pub emptying_containers: u64,
    /// Packed blocks that are to be plain again.
    pub unpacking: u64,
    /// Small blocks that wait to be packed.
    pub small_blocks: u64,
    /// Their bytes, once.
    pub small_bytes: u64,
    /// Containers that were begun to be emptied since the NameNode's start.
    pub emptied: u64,
    /// Packed blocks that became plain again since then.
    pub unpacked: u64,
}
