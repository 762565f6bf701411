//! What is asked of a path before a call is carried out.

use cairn_wire::exception::class;

use crate::refusal::Refusal;

/// Longest path, in UTF-16 units (`HdfsServerConstants.MAX_PATH_LENGTH`).
const MAX_PATH_LEN: usize = 8000;
/// Most components of a path (`HdfsServerConstants.MAX_PATH_DEPTH`).
const MAX_PATH_DEPTH: usize = 1000;

/// Refuses paths beyond all measure. Source: Hadoop 3.5.0 `NameNodeRpcServer#checkPathLength`.
pub(super) fn check_path_len(operation: &str, path: &str) -> Result<(), Refusal> {
    if path.is_empty() {
        let message = "Can not create a Path from an empty string";
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    let depth = path.split('/').filter(|name| !name.is_empty()).count();
    if path.encode_utf16().count() <= MAX_PATH_LEN && depth <= MAX_PATH_DEPTH {
        return Ok(());
    }
    Err(Refusal::io(format!(
        "{operation}: Pathname too long.  Limit {MAX_PATH_LEN} characters, {MAX_PATH_DEPTH} levels."
    )))
}
