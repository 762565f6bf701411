//! `GET /imagetransfer?getimage=1&txid=latest`: the namespace as Hadoop's image, for `hdfs dfsadmin -fetchImage`.
//!
//! It is made when it is asked for ([`crate::journal::export`]), of one state of the store, into a file without a name in the
//! NameNode's folder: its length and MD5 go before it. As on Hadoop, whoever reaches the page gets it while users are only
//! believed, since that client does not say who it is; with security on superusers do.
//!
//! Source: Hadoop 3.5.0 `ImageServlet`, `TransferFsImage`.

use crate::fsck;
use crate::journal::export::{self, ExportError, Written};
use crate::node::NameNode;
use bytes::Bytes;
use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Request, Response, Streamed};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// Where it is.
pub(crate) const PATH: &str = "/imagetransfer";
/// The name of the file while it has one.
const FILE: &str = "fsimage.unnamed";
/// Bytes that are sent at a time, and pieces that may wait for the receiver.
const PIECE_LEN: usize = 256 << 10;
const PIECES_MAX: usize = 4;

/// Makes images, one at a time.
pub(crate) struct Images {
    node: Arc<NameNode>,
    place: Arc<Semaphore>,
}

/// An image that is made.
struct Made {
    file: File,
    len: u64,
    transaction: u64,
    written: Written,
}

impl Images {
    pub(crate) fn new(node: Arc<NameNode>) -> Images {
        Images { node, place: Arc::new(Semaphore::new(1)) }
    }

    async fn send(&self, request: Request) -> Result<Answer, Response> {
        if !request.wants_body() {
            return Err(Response::error(405, "only GET is served"));
        }
        if self.node.config.security.is_some() {
            let caller = self.node.caller_named(fsck::user(&request)?).await;
            let refused = self.node.require_superuser(&caller, "getimage");
            refused.map_err(|refusal| Response::error(403, &refusal.0.to_string()))?;
        }
        if request.param("getimage").is_none() || request.param("txid") != Some("latest") {
            // The status that Hadoop has for whatever it cannot give.
            return Err(Response::error(410, "only the latest image is served"));
        }
        let permit = Arc::clone(&self.place).try_acquire_owned();
        let permit = permit.map_err(|_| Response::error(503, "another image is being made"))?;
        let node = Arc::clone(&self.node);
        let made = tokio::task::spawn_blocking(move || make(&node)).await;
        let made = made.map_err(|_| Response::error(500, "the image was interrupted"))?;
        let Made { mut file, len, transaction, written } = made.map_err(|error| {
            tracing::warn!(%error, "an image was not made");
            let status = if matches!(error, ExportError::Refused(_)) { 409 } else { 500 };
            Response::error(status, &error.to_string())
        })?;
        tracing::info!(transaction, len, changed = ?written.changed, "an image was made");
        let (sender, body) = mpsc::channel(PIECES_MAX);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut piece = vec![0; PIECE_LEN];
            // Whoever misses a byte sees that by the length.
            while let Ok(len @ 1..) = file.read(&mut piece) {
                if sender.blocking_send(Bytes::copy_from_slice(&piece[..len])).is_err() {
                    return;
                }
            }
        });
        let name = format!("fsimage_{transaction:019}");
        let mut answer = Streamed::new("application/octet-stream", body).of_len(len);
        answer.headers = vec![
            ("content-disposition", format!("attachment; filename={name}")),
            ("x-image-edits-name", name),
            ("x-md5-digest", written.md5),
        ];
        Ok(Answer::Streamed(answer))
    }
}

/// Makes an image of the namespace as it is. Blocks.
fn make(node: &NameNode) -> Result<Made, ExportError> {
    let path = node.config.name_dir.join(FILE);
    let io = |source| ExportError::Io { path: path.clone(), source };
    let options = || File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let mut file = options().map_err(io)?;
    // Whatever happens, nothing is left of it.
    fs::remove_file(&path).map_err(io)?;
    let namespace_id = node.ns.identity().namespace_id;
    let (transaction, written) = node.ns.read(|store| {
        let transaction = store.applied();
        Ok::<_, ExportError>((transaction, export::write(store, namespace_id, transaction, &file)?))
    })?;
    let len = file.seek(SeekFrom::End(0)).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    Ok(Made { file, len, transaction, written })
}

impl Handler for Images {
    fn answer(&self, request: Request, _body: Body) -> Boxed<'_, Answer> {
        Box::pin(async { self.send(request).await.unwrap_or_else(Answer::from) })
    }
}
