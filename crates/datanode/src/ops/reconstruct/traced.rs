//! Work in the background as traces of its own.

use cairn_trace::Span;

/// The first span of a trace of some work on a block, if that is recorded.
pub(super) fn begun(what: &'static str, block: impl ToString) -> Option<Span> {
    let mut span = Span::begun(|| what.to_string())?;
    span.note("cairn.block", block);
    Some(span)
}

/// Does some work as a part of a trace, if it is recorded.
pub(super) async fn part_of(span: Option<Span>, work: impl Future<Output = ()>) {
    match span {
        None => work.await,
        // Few are: the others need no room for it.
        Some(span) => Box::pin(span.contains(work)).await,
    }
}
