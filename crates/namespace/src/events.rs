//! What a command has changed, in the words of those who watch the tree (inotify).
//!
//! Told from the store before the command and from what it has changed, so that paths are real ones and
//! what closes a file is told whatever it was. Source: Hadoop 3.5.0 `InotifyFSEditLogOpTranslator`, `Event`.

use crate::acl::{self, AclEntry};
use crate::command::{Command, Entry};
use crate::encoding::{encode_enum, encode_struct};
use crate::encryption;
use crate::error::Result;
use crate::inode::{self, Inode, InodeId};
use crate::ops::acl::AclChange;
use crate::ops::create::Create;
use crate::ops::satisfy_storage_policy;
use crate::outcome::Outcome;
use crate::path;
use crate::policy_admin::{self, REPLICATION_NAME};
use crate::settings;
use crate::status::FileStatus;
use crate::store::{Changes, Overlay, StoreRead, Table};
use crate::xattr::{XAttrName, XAttrSpace};
use prost::Message;

/// The events of one entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    /// The entry's number.
    pub sequence: u64,
    /// What it has done, in order; never nothing.
    pub events: Vec<Event>,
}

/// One thing that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file or directory was made.
    Create {
        /// Where.
        path: String,
        /// What, as it was then.
        inode: Box<Inode>,
        /// Whether it might have replaced another file.
        overwrite: bool,
    },
    /// A file that was open is not any more.
    Close {
        /// Which.
        path: String,
        /// Its bytes; none where they are not told.
        len: Option<u64>,
        /// Its modification time, ms since the epoch.
        time_ms: u64,
    },
    /// A file was opened to grow.
    Append {
        /// Which.
        path: String,
        /// In a new block.
        new_block: bool,
    },
    /// Something was moved.
    Rename {
        /// Where it was.
        from: String,
        /// Where it is.
        to: String,
        /// When, ms since the epoch.
        time_ms: u64,
    },
    /// Something about an inode was changed.
    Metadata {
        /// Which.
        path: String,
        /// What.
        change: MetadataChange,
    },
    /// Something was removed.
    Unlink {
        /// Which.
        path: String,
        /// When, ms since the epoch.
        time_ms: u64,
    },
    /// A file was cut off.
    Truncate {
        /// Which.
        path: String,
        /// Its bytes then.
        len: u64,
        /// When, ms since the epoch.
        time_ms: u64,
    },
}

/// What about an inode was changed. What is `None` stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataChange {
    /// Times, ms since the epoch.
    Times {
        /// Modification.
        mtime: Option<u64>,
        /// Access.
        atime: Option<u64>,
    },
    /// The number of copies.
    Replication(u16),
    /// Owner and group.
    Owner {
        /// The user.
        owner: Option<String>,
        /// The group.
        group: Option<String>,
    },
    /// The permission bits.
    Mode(u16),
    /// The access control list, as it is now; empty where there is none.
    Acl(Vec<AclEntry>),
    /// An extended attribute.
    XAttr {
        /// Which.
        name: XAttrName,
        /// Its value, where that is told.
        value: Option<Vec<u8>>,
        /// Whether it is gone.
        removed: bool,
    },
}

encode_struct!(EventBatch { sequence, events });
encode_enum!(Event {
    1 => Create { path, inode, overwrite },
    2 => Close { path, len, time_ms },
    3 => Append { path, new_block },
    4 => Rename { from, to, time_ms },
    5 => Metadata { path, change },
    6 => Unlink { path, time_ms },
    7 => Truncate { path, len, time_ms },
});
encode_enum!(MetadataChange {
    1 => Times { mtime, atime },
    2 => Replication(copies),
    3 => Owner { owner, group },
    4 => Mode(mode),
    5 => Acl(entries),
    6 => XAttr { name, value, removed },
});

impl Event {
    /// Whether a created file is erasure coded; none for a directory.
    pub fn is_striped(inode: &Inode) -> Option<bool> {
        inode.file().map(|file| file.redundancy.is_striped())
    }
}

/// The attribute that Hadoop keeps the policy of a directory in. Source: Hadoop 3.5.0
/// `HdfsServerConstants#XATTR_ERASURECODING_POLICY`.
const POLICY_XATTR: &str = "hdfs.erasurecoding.policy";

/// What `entry` has done to a store; `changes` are not in it yet.
pub fn of(
    before: &dyn StoreRead,
    changes: &Changes,
    entry: &Entry,
    outcome: &Outcome,
) -> Result<Vec<Event>> {
    let after = Overlay::over(before, changes);
    let told = Told { before, after: &after, entry };
    let mut events = told.new_directories(changes)?;
    events.extend(told.of_command(outcome)?);
    events.extend(told.closed(changes)?);
    Ok(events)
}

struct Told<'a> {
    before: &'a dyn StoreRead,
    after: &'a dyn StoreRead,
    entry: &'a Entry,
}

impl Told<'_> {
    fn of_command(&self, outcome: &Outcome) -> Result<Vec<Event>> {
        let time_ms = self.entry.now_ms;
        let one = |event| Ok(vec![event]);
        let metadata = |path: String, change| Ok(vec![Event::Metadata { path, change }]);
        match (&self.entry.command, outcome) {
            (Command::Create(command), Outcome::Created { status, .. }) => {
                self.created(command, status)
            }
            (Command::CreateEncrypted(command), Outcome::Created { status, .. }) => {
                self.created(&command.create, status)
            }
            (Command::CreateEncryptionZone(command), _) => self.zone_changed(&command.path),
            (Command::ReencryptEncryptionZone(command), _) => self.zone_changed(&command.path),
            (Command::Append(command), Outcome::Appended { .. }) => {
                let path = self.real(&command.path)?;
                one(Event::Append { path, new_block: command.new_block })
            }
            (Command::Rename(command), Outcome::Flag(true)) => self.moved(&command.src),
            (Command::RenameTo(command), _) => self.moved(&command.src),
            (Command::Delete(command), Outcome::Removed { done: true, .. }) => {
                one(Event::Unlink { path: self.real(&command.path)?, time_ms })
            }
            (Command::SetReplication(command), Outcome::ReplicationSet { done: true, .. }) => {
                let change = MetadataChange::Replication(command.replication);
                metadata(self.real(&command.path)?, change)
            }
            (Command::SetPermission(command), _) => {
                metadata(self.real(&command.path)?, MetadataChange::Mode(command.mode))
            }
            (Command::SetOwner(command), _) => {
                let (owner, group) = (command.owner.clone(), command.group.clone());
                metadata(self.real(&command.path)?, MetadataChange::Owner { owner, group })
            }
            (Command::SetTimes(command), _) => {
                let (mtime, atime) = (command.mtime, command.atime);
                metadata(self.real(&command.path)?, MetadataChange::Times { mtime, atime })
            }
            (Command::TouchAccessTime(command), _) => {
                let change = MetadataChange::Times { mtime: None, atime: Some(time_ms) };
                metadata(self.path_now(command.file)?, change)
            }
            (Command::SetXAttr(command), _) => {
                let (name, value) = (command.name.clone(), Some(command.value.clone()));
                let change = MetadataChange::XAttr { name, value, removed: false };
                metadata(self.real(&command.path)?, change)
            }
            (Command::RemoveXAttr(command), _) => {
                let name = command.name.clone();
                let change = MetadataChange::XAttr { name, value: None, removed: true };
                metadata(self.real(&command.path)?, change)
            }
            (Command::SatisfyStoragePolicy(command), Outcome::ToSatisfy(Some(_))) => {
                let (name, value) = (satisfy_storage_policy::mark(), Some(Vec::new()));
                let change = MetadataChange::XAttr { name, value, removed: false };
                metadata(self.real(&command.path)?, change)
            }
            (Command::SetEcPolicy(command), _) => {
                let default = || settings::get(self.before).map(|set| set.default_policy.clone());
                let policy = command.policy.clone().map_or_else(default, Ok)?;
                metadata(self.real(&command.path)?, policy_attribute(&policy, false))
            }
            (Command::UnsetEcPolicy(command), _) => {
                let at = path::follow(self.before, &command.path)?;
                let policy = policy_admin::effective(self.before, &at)?;
                let name = policy.map_or_else(|| REPLICATION_NAME.to_string(), |it| it.name);
                metadata(at.path, policy_attribute(&name, true))
            }
            (Command::ChangeAcl(command), _) => {
                let at = path::follow(self.after, &command.path)?;
                let list = match (&command.change, at.target()) {
                    (AclChange::RemoveAll, _) | (_, None) => Vec::new(),
                    (_, Some(inode)) => acl::whole(inode),
                };
                metadata(at.path.clone(), MetadataChange::Acl(list))
            }
            (Command::Truncate(command), _) => {
                let path = self.real(&command.path)?;
                one(Event::Truncate { path, len: command.new_len, time_ms })
            }
            (Command::Concat(command), _) => {
                let path = self.real(&command.target)?;
                let mut events = vec![Event::Append { path: path.clone(), new_block: false }];
                for source in &command.sources {
                    events.push(Event::Unlink { path: self.real(source)?, time_ms });
                }
                events.push(Event::Close { path, len: None, time_ms });
                Ok(events)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn created(&self, command: &Create, status: &FileStatus) -> Result<Vec<Event>> {
        let path = self.path_now(status.inode.id)?;
        let inode = Box::new(Inode::clone(&status.inode));
        Ok(vec![Event::Create { path, inode, overwrite: command.overwrite }])
    }

    fn zone_changed(&self, path: &str) -> Result<Vec<Event>> {
        let at = path::follow(self.after, path)?;
        let Some(root) = at.target() else { return Ok(Vec::new()) };
        let value = Some(encryption::zone(self.after, root.id)?.encode_to_vec());
        let name = encryption::zone_attribute();
        let change = MetadataChange::XAttr { name, value, removed: false };
        Ok(vec![Event::Metadata { path: at.path, change }])
    }

    /// The directories that were made, those above before those below.
    fn new_directories(&self, changes: &Changes) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for id in changed_inodes(changes) {
            if inode::get(self.before, id)?.is_some() {
                continue;
            }
            let Some(inode) = inode::get(self.after, id)?.filter(Inode::is_directory) else {
                continue;
            };
            let (path, inode) = (self.path_now(id)?, Box::new(inode));
            events.push(Event::Create { path, inode, overwrite: false });
        }
        Ok(events)
    }

    /// The files that were open and are closed.
    fn closed(&self, changes: &Changes) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for id in changed_inodes(changes) {
            let open = |inode: &Inode| inode.file().is_some_and(|file| file.writer.is_some());
            let Some(now) = inode::get(self.after, id)?.filter(|inode| !open(inode)) else {
                continue;
            };
            if !inode::get(self.before, id)?.is_some_and(|inode| open(&inode)) {
                continue;
            }
            let (path, len) = (self.path_now(id)?, now.file().map(|file| file.len));
            events.push(Event::Close { path, len, time_ms: now.mtime });
        }
        Ok(events)
    }

    fn moved(&self, src: &str) -> Result<Vec<Event>> {
        let at = path::follow(self.before, src)?;
        let Some(target) = at.target() else { return Ok(Vec::new()) };
        let (from, to, time_ms) = (at.path.clone(), self.path_now(target.id)?, self.entry.now_ms);
        Ok(vec![Event::Rename { from, to, time_ms }])
    }

    /// A path as it was before the command, without reserved names.
    fn real(&self, path: &str) -> Result<String> {
        Ok(path::follow(self.before, path)?.path)
    }

    fn path_now(&self, id: InodeId) -> Result<String> {
        Ok(path::of_inode(self.after, id)?.map_or_else(String::new, |at| at.path))
    }
}

fn policy_attribute(policy: &str, removed: bool) -> MetadataChange {
    let name = XAttrName { space: XAttrSpace::System, name: POLICY_XATTR.to_string() };
    // As Java writes a text: behind its length.
    let value = [&(policy.len() as u32).to_be_bytes(), policy.as_bytes()].concat();
    MetadataChange::XAttr { name, value: Some(value), removed }
}

fn changed_inodes(changes: &Changes) -> Vec<InodeId> {
    let id = |key: &[u8]| key.try_into().map(|key| InodeId(u64::from_be_bytes(key))).ok();
    changes.keys(Table::Inode).filter_map(id).collect()
}
