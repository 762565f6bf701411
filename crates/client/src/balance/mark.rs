//! The open file that says that a balancer or mover is running.
//!
//! Source: Hadoop 3.5.0 `NameNodeConnector#checkAndMarkRunning`. Unlike there, one that is left over is appended to
//! and not replaced: two that begin at the same time could each remove the other's.

use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::types::CreateOptions;
use crate::write::FileWriter;
use cairn_wire::exception::class;
use std::io::ErrorKind;

/// The mark, held.
pub(super) struct Mark {
    path: &'static str,
    file_id: Option<u64>,
    writer: FileWriter,
}

/// Whether somebody else has the mark.
fn is_taken(error: &ClientError) -> bool {
    let ClientError::Remote { class, .. } = error else { return false };
    let classes =
        [class::ALREADY_BEING_CREATED, class::RECOVERY_IN_PROGRESS, class::FILE_ALREADY_EXISTS];
    classes.contains(&class.as_str())
}

impl Mark {
    /// Opens the file that only one can hold; `None` if another one does.
    pub(super) async fn take(fs: &FileSystem, path: &'static str) -> Result<Option<Mark>> {
        let options = CreateOptions {
            create_parents: true,
            should_replicate: true,
            ..CreateOptions::default()
        };
        let opened = match fs.append(path).await {
            Err(error) if error.kind() == ErrorKind::NotFound => fs.create(path, &options).await,
            opened => opened,
        };
        let mut writer = match opened {
            Err(error) if is_taken(&error) => return Ok(None),
            opened => opened?,
        };
        writer.write(fs.session.client_name.as_bytes()).await?;
        writer.hflush().await?;
        let file_id = fs.file_info(path).await?.map(|status| status.file_id);
        Ok(Some(Mark { path, file_id, writer }))
    }

    /// Takes the mark away, if it is still the one that was made.
    pub(super) async fn give_up(self, fs: &FileSystem) {
        let Mark { path, file_id, writer } = self;
        let gone = async {
            let there = fs.file_info(path).await?.map(|status| status.file_id);
            if there.is_some() && there == file_id {
                // While it is open nobody else can have it.
                fs.delete(path, false).await?;
            }
            Ok::<_, ClientError>(())
        };
        if let Err(error) = gone.await {
            tracing::warn!(%error, path, "cannot take the mark of the running process away");
        }
        drop(writer);
    }
}
