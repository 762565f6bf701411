//! `GET /backup`: a backup of the namespace, sent while it is made, to superusers.
//!
//! With `after=N&timeline=T` it has the entries of the log behind that one, up to `until=N` if that is given, without it
//! everything ([`crate::journal::backup`]). 410 says that only everything can be had.

use crate::fsck;
use crate::journal::backup::{After, BackupError};
use crate::node::NameNode;
use bytes::Bytes;
use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Request, Response, Streamed};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Where it is.
pub(crate) const PATH: &str = "/backup";
/// Backups that are made at the same time: each keeps pages of the store from being used again.
const AT_ONCE: usize = 2;
/// Pieces that may wait for the receiver.
const PIECES_MAX: usize = 4;

/// Makes backups.
pub(crate) struct Backups {
    node: Arc<NameNode>,
    places: Arc<Semaphore>,
}

impl Backups {
    pub(crate) fn new(node: Arc<NameNode>) -> Backups {
        Backups { node, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    async fn make(&self, request: Request) -> Result<Answer, Response> {
        if !request.wants_body() {
            return Err(Response::error(405, "only GET is served"));
        }
        let caller = self.node.caller_named(fsck::user(&request)?).await;
        let refused = self.node.require_superuser(&caller, "backup");
        refused.map_err(|refusal| Response::error(403, &refusal.0.to_string()))?;
        let number = |key: &str| request.param(key).map(str::parse::<u64>).transpose();
        let (sequence, timeline) =
            (number("after"), number("timeline").map(Option::unwrap_or_default));
        let after = match (sequence, timeline.map(u32::try_from), number("until")) {
            (Ok(None), ..) => None,
            (Ok(Some(sequence)), Ok(Ok(timeline)), Ok(until)) => {
                Some(After { sequence, timeline, until })
            }
            _ => return Err(Response::error(400, "after, timeline and until are numbers")),
        };
        let permit = Arc::clone(&self.places).try_acquire_owned();
        let permit = permit.map_err(|_| Response::error(503, "other backups are being made"))?;
        let ((sender, body), (begun, begins)) = (mpsc::channel(PIECES_MAX), oneshot::channel());
        let ns = Arc::clone(&self.node.ns);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut begun = Some(begun);
            let made = ns.back_up(after, &mut |piece| {
                // A receiver that has gone is seen below.
                begun.take().map(|begun| begun.send(Ok(())));
                sender.blocking_send(Bytes::from(piece)).is_ok()
            });
            match made {
                Ok(header) => {
                    let (kind, last, user) = (header.kind, header.last, &caller.user);
                    tracing::info!(?kind, last, user, "a backup was made");
                    // The mark of a good end.
                    let _ = sender.blocking_send(Bytes::new());
                }
                Err(error) => {
                    tracing::warn!(%error, "a backup was not made");
                    begun.take().map(|begun| begun.send(Err(error)));
                }
            }
        });
        match begins.await {
            Ok(Ok(())) => Ok(Answer::Streamed(Streamed::new("application/octet-stream", body))),
            Ok(Err(error)) => Err(Response::error(status(&error), &error.to_string())),
            Err(_) => Err(Response::error(500, "the backup was interrupted")),
        }
    }
}

fn status(error: &BackupError) -> u16 {
    match error {
        BackupError::TooOld(_) | BackupError::OtherTimeline => 410,
        BackupError::Unknown { .. } => 409,
        BackupError::Log(_)
        | BackupError::Store(_)
        | BackupError::Stopped(_)
        | BackupError::Gone => 500,
    }
}

impl Handler for Backups {
    fn answer(&self, request: Request, _body: Body) -> Boxed<'_, Answer> {
        Box::pin(async { self.make(request).await.unwrap_or_else(Answer::from) })
    }
}
