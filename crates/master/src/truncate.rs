//! Cutting files off.

use crate::contiguous::pack::unpack;
use crate::lease;
use crate::op::{Op, OpError};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{CallId, Caller, NamespaceError, Outcome, query};

/// Cuts a file off. Inside a packed block that block is made plain first, which the client waits for a while; where that
/// takes longer, it is told to try again.
///
/// The command rests on nothing: nobody has looked before it. That a block is to be plain rests on the command's own
/// checks of who may change the file.
pub async fn truncate(
    op: &impl Op,
    caller: &Caller,
    call: Option<CallId>,
    command: Truncate,
) -> Result<Outcome, OpError> {
    let Truncate { path, new_len, .. } = command.clone();
    let answer = lease::submit_or_recover(op, caller, call, command.clone(), &path).await;
    let Err(OpError::Refused(NamespaceError::Packed(_))) = &answer else { return answer };
    let packed = op.look(|look| query::packed_cut(look.store, &path, new_len))?;
    if let Some(id) = packed
        && !unpack::unpacked(op, id).await?
    {
        return answer;
    }
    lease::submit_or_recover(op, caller, call, command, &path).await
}
