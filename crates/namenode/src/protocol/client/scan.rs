//! Lists over the whole file system, a page at a time: open files, files with lost blocks.

use cairn_namespace::lease::open_files;
use cairn_namespace::{InodeId, query};
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;

use super::super::refusal::{Answer, Refusal, answer};
use crate::NameNode;

/// Open files of one page. Source: Hadoop 3.5.0 `dfs.namenode.list.openfiles.num.responses`.
const OPEN_FILES_PAGE: usize = 1000;
/// Files of one page. Source: Hadoop 3.5.0 `dfs.corruptfilesreturned.max`.
const CORRUPT_FILES_PAGE: usize = 500;

/// Whether `path` is `root` or below it.
pub(crate) fn is_below(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Source: Hadoop 3.5.0 `FSNamesystem#listOpenFiles`.
pub async fn list_open_files(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListOpenFilesRequestProto = call.decode()?;
    let root = request.path.as_deref().unwrap_or("/");
    cairn_namespace::path::check_absolute(root)?;
    node.check_superuser(call).await?;
    let all = pb::OpenFilesTypeProto::AllOpenFiles as i32;
    if !request.types.is_empty() && !request.types.contains(&all) {
        return Err(Refusal::unsupported("Files that block a decommission are not listed"));
    }
    let after = InodeId(u64::try_from(request.id).unwrap_or(0));
    let (entries, has_more) = node.ns.read(|store| -> Result<_, Refusal> {
        let mut ids = open_files(store, after, OPEN_FILES_PAGE + 1)?;
        let has_more = ids.len() > OPEN_FILES_PAGE;
        ids.truncate(OPEN_FILES_PAGE);
        let mut entries = Vec::new();
        for id in ids {
            let Some((path, status)) = query::get_inode_info(store, id)? else { continue };
            let Some(writer) = status.inode.file().and_then(|file| file.writer.clone()) else {
                continue;
            };
            if is_below(&path, root) {
                entries.push(pb::OpenFilesBatchResponseProto {
                    id: id.0 as i64,
                    path,
                    client_name: writer.holder,
                    client_machine: writer.client_machine,
                });
            }
        }
        Ok((entries, has_more))
    })?;
    answer(&pb::ListOpenFilesResponseProto { entries, has_more, types: request.types })
}

/// Files with blocks of which nothing good is left. The cookie counts the blocks that were seen.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#listCorruptFileBlocks`.
pub async fn list_corrupt_file_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListCorruptFileBlocksRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let mut seen: usize =
        request.cookie.as_deref().and_then(|cookie| cookie.parse().ok()).unwrap_or(0);
    let lost = {
        let cluster = node.cluster();
        if cluster.safe_mode().is_starting() {
            return Err(Refusal::io(
                "Cannot run listCorruptFileBlocks because replication queues have not been \
                 initialized.",
            ));
        }
        let lost = cluster.queues().level(cairn_redundancy::queue::Priority::Corrupt);
        lost.skip(seen).take(CORRUPT_FILES_PAGE).collect::<Vec<_>>()
    };
    let files = node.ns.read(|store| -> Result<_, Refusal> {
        let mut files = Vec::new();
        for id in lost {
            seen += 1;
            let Some(info) = query::get_block(store, id)? else { continue };
            let Some((path, _)) = query::get_inode_info(store, info.block.file)? else { continue };
            if is_below(&path, &request.path) {
                files.push(path);
            }
        }
        Ok(files)
    })?;
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
