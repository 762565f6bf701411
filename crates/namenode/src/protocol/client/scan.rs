//! Lists over the whole file system, a page at a time: open files, files with lost blocks.

use cairn_namespace::lease::open_files;
use cairn_namespace::query::{self, BlockInfo};
use cairn_namespace::snapshot::paths::path_or_kept;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{InodeId, NamespaceError};
use cairn_net::rpc_server::Call;
use cairn_process::disk_work::step_aside;
use cairn_redundancy::queue::Priority;
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Open files that are looked at for a page at a time.
const OPEN_FILES_STEP: usize = 1000;
/// Blocks that are looked at under the cluster's lock at a time.
const LOST_STEP: usize = 500;

/// Whether `path` is `root` or below it.
fn is_below(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Open files below a path: all of them, or those of which a leaving DataNode holds a block that others lack.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#listOpenFiles`, `#getFilesBlockingDecom`.
pub async fn list_open_files(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListOpenFilesRequestProto = call.decode()?;
    let root = request.path.as_deref().unwrap_or("/");
    cairn_namespace::path::check_absolute(root)?;
    node.check_superuser(call).await?;
    let has = |kind: pb::OpenFilesTypeProto| request.types.contains(&(kind as i32));
    let all = request.types.is_empty() || has(pb::OpenFilesTypeProto::AllOpenFiles);
    if !all && !has(pb::OpenFilesTypeProto::BlockingDecommission) {
        let message = format!("Unknown OpenFileType: {:?}", request.types);
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    let mut after = InodeId(u64::try_from(request.id).unwrap_or(0));
    let mut entries = Vec::new();
    // A client takes an empty page for the last one, so pages are filled.
    loop {
        let (page, last) = open_files_after(node, after, root)?;
        for (file, blocks) in page {
            if all || is_blocking(node, &blocks) {
                entries.push(file);
            }
            if entries.len() >= node.config.open_files_page {
                let types = request.types;
                return answer(&pb::ListOpenFilesResponseProto { entries, has_more: true, types });
            }
        }
        match last {
            Some(last) => after = last,
            None => break,
        }
    }
    let types = request.types;
    answer(&pb::ListOpenFilesResponseProto { entries, has_more: false, types })
}

/// An open file and its blocks.
type OpenFile = (pb::OpenFilesBatchResponseProto, Vec<BlockId>);

/// Some open files below `root`, and the last one that was looked at if there may be more.
fn open_files_after(
    node: &NameNode,
    after: InodeId,
    root: &str,
) -> Result<(Vec<OpenFile>, Option<InodeId>), Refusal> {
    node.ns.read(|store| {
        let ids = open_files(store, after, OPEN_FILES_STEP)?;
        let last = ids.last().copied().filter(|_| ids.len() == OPEN_FILES_STEP);
        let mut files = Vec::new();
        for id in ids {
            let Some((path, status)) = query::get_inode_info(store, id)? else { continue };
            let Some(writer) = status.inode.file().and_then(|file| file.writer.clone()) else {
                continue;
            };
            if !is_below(&path, root) {
                continue;
            }
            let Some(of) = query::file_blocks(store, id)? else { continue };
            // The last block has no bytes yet, as far as the namespace knows.
            let blocks = of.blocks.into_iter().chain(of.last).map(|(_, block)| block.id).collect();
            let file = pb::OpenFilesBatchResponseProto {
                id: id.0 as i64,
                path,
                client_name: writer.holder,
                client_machine: writer.client_machine,
            };
            files.push((file, blocks));
        }
        Ok((files, last))
    })
}

fn is_blocking(node: &NameNode, blocks: &[BlockId]) -> bool {
    node.see(|cluster, lookup| {
        blocks.iter().any(|block| cluster.keeps_a_node_from_leaving(lookup, *block))
    })
}

/// Goes a step on through the blocks of which nothing good is left, from behind the first `seen`, and hands those of
/// files below `root` to `take`, which says whether it wants more. Returns whether there may be more that are wanted.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#listCorruptFileBlocks`.
pub(crate) fn take_lost<E: From<Refusal> + From<NamespaceError>>(
    node: &NameNode,
    root: &str,
    seen: &mut usize,
    mut take: impl FnMut(&dyn StoreRead, BlockInfo, String) -> Result<bool, E>,
) -> Result<bool, E> {
    let lost: Vec<Vec<BlockId>> = node.see(|cluster, lookup| {
        if !cluster.safe_mode().is_queueing() {
            return Err(Refusal::io(
                "Cannot run listCorruptFileBlocks because replication queues have not been \
                 initialized.",
            ));
        }
        let lost = cluster.queues().level(Priority::Corrupt).skip(*seen).take(LOST_STEP);
        Ok(lost.map(|id| cluster.lost_blocks(lookup, id)).collect())
    })?;
    let may_have_more = !lost.is_empty();
    node.ns.read(|store| {
        for together in lost {
            *seen += 1;
            let mut wants_more = true;
            for id in together {
                let Some(info) = query::get_block(store, id)? else { continue };
                let Some(path) = path_or_kept(store, info.block.file)? else { continue };
                wants_more &= !is_below(&path, root) || take(store, info, path)?;
            }
            if !wants_more {
                return Ok(false);
            }
        }
        Ok(may_have_more)
    })
}

/// Files with blocks of which nothing good is left. The cookie counts the blocks that were seen.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#listCorruptFileBlocks`.
pub async fn list_corrupt_file_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListCorruptFileBlocksRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let mut seen: usize =
        request.cookie.as_deref().and_then(|cookie| cookie.parse().ok()).unwrap_or(0);
    let mut files = Vec::new();
    while take_lost(node, &request.path, &mut seen, |_, _, path| -> Result<_, Refusal> {
        files.push(path);
        Ok(files.len() < node.config.corrupt_files_page)
    })? {
        step_aside().await;
    }
    let corrupt = pb::CorruptFileBlocksProto { files, cookie: seen.to_string() };
    answer(&pb::ListCorruptFileBlocksResponseProto { corrupt })
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn below_means_by_whole_names() {
        for (path, root, below) in [
            ("/a/b", "/", true),
            ("/a/b", "/a", true),
            ("/a/b", "/a/", true),
            ("/a/b", "/a/b", true),
            ("/ab", "/a", false),
            ("/", "/", true),
            ("/a", "/a/b", false),
        ] {
            assert_eq!(is_below(path, root), below, "{path} {root}");
        }
    }
}
