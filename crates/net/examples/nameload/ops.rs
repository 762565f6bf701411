//! What is called, with which arguments.

use crate::connection::{BLOCK_LEN, Connection, whole};
use cairn_wire::proto::hdfs as pb;

/// Files of a folder.
const FOLDER: u64 = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Base,
    Folders,
    Mkdirs,
    Create,
    Write,
    Status,
    Open,
    List,
    Empty,
    Rename,
    Delete,
    DeleteTree,
    DeleteTreeAsUser,
    Summary,
    AllowSnapshot,
    Snapshot,
    DeleteSnapshot,
    DisallowSnapshot,
}

/// Calls of one kind on the files `0..files` of a round.
#[derive(Clone)]
pub struct Op {
    kind: Kind,
    round: u64,
    files: u64,
}

/// How far a file is.
pub enum Step {
    First,
    /// The file is there, and open.
    Created(u64),
    /// Its block has places.
    Placed(u64, Box<pb::LocatedBlockProto>),
    /// Too few replicas were known when it was completed.
    Incomplete(u64, Option<Box<pb::LocatedBlockProto>>),
    /// `complete` is under way.
    Completing(u64, Option<Box<pb::LocatedBlockProto>>),
}

fn mode(perm: u32) -> pb::FsPermissionProto {
    pb::FsPermissionProto { perm }
}

/// Numbers that look random and are the same in each run.
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 1
}

impl Op {
    pub fn parse(word: &str, round: u64, files: u64) -> Result<Op, String> {
        let kind = match word {
            // The folder of a round, which all may write to.
            "base" => Kind::Base,
            // The folders of its files.
            "folders" => Kind::Folders,
            "mkdirs" => Kind::Mkdirs,
            // `create` and `complete`.
            "create" => Kind::Create,
            // `create`, `addBlock` and `complete`.
            "write" => Kind::Write,
            "fileStatus" => Kind::Status,
            "open" => Kind::Open,
            "list" => Kind::List,
            // `msync`, which has neither arguments nor an answer: what a call costs before it does anything.
            "empty" => Kind::Empty,
            "rename" => Kind::Rename,
            // Of what was renamed.
            "delete" => Kind::Delete,
            // Of the round.
            "deleteTree" => Kind::DeleteTree,
            // The same by one of the users, whose rights are checked below.
            "deleteTreeAsUser" => Kind::DeleteTreeAsUser,
            "contentSummary" => Kind::Summary,
            "allowSnapshot" => Kind::AllowSnapshot,
            "createSnapshot" => Kind::Snapshot,
            "deleteSnapshot" => Kind::DeleteSnapshot,
            "disallowSnapshot" => Kind::DisallowSnapshot,
            _ => return Err(format!("no such operation: {word}")),
        };
        Ok(Op { kind, round, files: files.max(1) })
    }

    pub fn needs_superuser(&self) -> bool {
        use Kind::{
            AllowSnapshot, Base, DeleteSnapshot, DeleteTree, DisallowSnapshot, Snapshot, Summary,
        };
        matches!(
            self.kind,
            Base | AllowSnapshot
                | Snapshot
                | DeleteSnapshot
                | DisallowSnapshot
                | DeleteTree
                | Summary
        )
    }

    fn base(&self) -> String {
        format!("/load/r{}", self.round)
    }

    fn path(&self, letter: char, number: u64) -> String {
        format!("/load/r{}/d{}/{letter}{number}", self.round, number / FOLDER)
    }

    /// Puts the first call for `number`.
    pub fn begin(
        &self,
        to: &mut Connection,
        protocol: &'static str,
        client: &str,
        number: u64,
        id: i32,
    ) {
        let mut put = |method: &'static str, body: &dyn Body| body.put(to, id, protocol, method);
        let any = scatter(number) % self.files;
        match self.kind {
            Kind::Base | Kind::Folders | Kind::Mkdirs => {
                let src = match self.kind {
                    Kind::Base => self.base(),
                    Kind::Folders => format!("{}/d{number}", self.base()),
                    _ => format!("{}/m{}/m{number}", self.base(), number / FOLDER),
                };
                let (masked, create_parent) = (mode(0o777), true);
                let unmasked = Some(mode(0o777));
                put("mkdirs", &pb::MkdirsRequestProto { src, masked, create_parent, unmasked });
            }
            Kind::Create | Kind::Write => put(
                "create",
                &pb::CreateRequestProto {
                    src: self.path('f', number),
                    masked: mode(0o644),
                    client_name: client.to_string(),
                    create_flag: 1,
                    create_parent: true,
                    replication: 3,
                    block_size: 128 << 20,
                    ..Default::default()
                },
            ),
            Kind::Status => {
                put("getFileInfo", &pb::GetFileInfoRequestProto { src: self.path('f', any) })
            }
            Kind::Open => put(
                "getBlockLocations",
                &pb::GetBlockLocationsRequestProto {
                    src: self.path('f', any),
                    offset: 0,
                    length: 1 << 40,
                    ..Default::default()
                },
            ),
            Kind::List => put(
                "getListing",
                &pb::GetListingRequestProto {
                    src: format!("{}/d{}", self.base(), any / FOLDER),
                    start_after: Vec::new(),
                    need_location: false,
                    read_up_to: None,
                },
            ),
            Kind::Empty => put("msync", &pb::MsyncRequestProto {}),
            Kind::Rename => {
                let (src, dst) = (self.path('f', number), self.path('g', number));
                put("rename", &pb::RenameRequestProto { src, dst });
            }
            Kind::Delete => {
                let src = self.path('g', number);
                put("delete", &pb::DeleteRequestProto { src, recursive: false });
            }
            Kind::DeleteTree | Kind::DeleteTreeAsUser => {
                put("delete", &pb::DeleteRequestProto { src: self.base(), recursive: true });
            }
            Kind::Summary => {
                put("getContentSummary", &pb::GetContentSummaryRequestProto { path: self.base() });
            }
            Kind::AllowSnapshot => {
                put("allowSnapshot", &pb::AllowSnapshotRequestProto { snapshot_root: self.base() });
            }
            Kind::DisallowSnapshot => put(
                "disallowSnapshot",
                &pb::DisallowSnapshotRequestProto { snapshot_root: self.base() },
            ),
            Kind::DeleteSnapshot => put(
                "deleteSnapshot",
                &pb::DeleteSnapshotRequestProto {
                    snapshot_root: self.base(),
                    snapshot_name: format!("s{number}"),
                },
            ),
            Kind::Snapshot => put(
                "createSnapshot",
                &pb::CreateSnapshotRequestProto {
                    snapshot_root: self.base(),
                    snapshot_name: Some(format!("s{number}")),
                },
            ),
        }
    }

    /// Takes an answer in; whether it was the last one. `message` is the message with its length before it.
    pub fn answered(&self, step: &mut Step, message: &[u8]) -> Result<bool, String> {
        match (self.kind, std::mem::replace(step, Step::First)) {
            (Kind::Create | Kind::Write, Step::First) => {
                let answer: pb::CreateResponseProto = decoded(message)?;
                *step = Step::Created(answer.fs.and_then(|fs| fs.file_id).unwrap_or(0));
                Ok(false)
            }
            (Kind::Write, Step::Created(file)) => {
                let answer: pb::AddBlockResponseProto = decoded(message)?;
                *step = Step::Placed(file, Box::new(answer.block));
                Ok(false)
            }
            (Kind::Create | Kind::Write, Step::Completing(file, block)) => {
                let answer: pb::CompleteResponseProto = decoded(message)?;
                if !answer.result {
                    *step = Step::Incomplete(file, block);
                }
                Ok(answer.result)
            }
            (
                Kind::Rename
                | Kind::Delete
                | Kind::DeleteTree
                | Kind::DeleteTreeAsUser
                | Kind::Mkdirs,
                _,
            ) => {
                // All of these have one field, a flag.
                let answer: pb::DeleteResponseProto = decoded(message)?;
                if answer.result { Ok(true) } else { Err("it was not done".to_string()) }
            }
            // All of these have one field, which is left out where nothing is there.
            (Kind::Status | Kind::Open | Kind::List, _) => match message {
                [] | [0, ..] => Err("nothing is there".to_string()),
                _ => Ok(true),
            },
            _ => Ok(true),
        }
    }

    /// Puts the next call for a file.
    pub fn go_on(
        &self,
        to: &mut Connection,
        protocol: &'static str,
        client: &str,
        number: u64,
        id: i32,
        step: &mut Step,
    ) {
        let (src, client_name) = (self.path('f', number), client.to_string());
        let (file, block) = match std::mem::replace(step, Step::First) {
            Step::Created(file) if self.kind == Kind::Write => {
                let file_id = Some(file);
                let body =
                    pb::AddBlockRequestProto { src, client_name, file_id, ..Default::default() };
                to.put(id, protocol, "addBlock", &body);
                *step = Step::Created(file);
                return;
            }
            Step::Created(file) => (file, None),
            Step::Placed(file, block) => (file, Some(block)),
            Step::Incomplete(file, block) => (file, block),
            Step::First | Step::Completing(..) => return,
        };
        let last = block.as_ref().map(|located| whole(located, BLOCK_LEN));
        let body = pb::CompleteRequestProto { src, client_name, last, file_id: Some(file) };
        to.put(id, protocol, "complete", &body);
        *step = Step::Completing(file, block);
    }
}

fn decoded<M: prost::Message + Default>(message: &[u8]) -> Result<M, String> {
    M::decode_length_delimited(message).map_err(|error| error.to_string())
}

/// A request message of any kind.
trait Body {
    fn put(&self, to: &mut Connection, id: i32, protocol: &'static str, method: &'static str);
}

impl<M: prost::Message> Body for M {
    fn put(&self, to: &mut Connection, id: i32, protocol: &'static str, method: &'static str) {
        to.put(id, protocol, method, self);
    }
}
