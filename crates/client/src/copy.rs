//! Copying a file, also from one file system to another.

use crate::error::Result;
use crate::fs::FileSystem;
use crate::types::CreateOptions;

impl FileSystem {
    /// Copies the bytes of a file to `target` on `to`, and deletes the half of it that a failure leaves.
    /// A file must not be copied to itself.
    pub async fn copy_file(
        &self,
        path: &str,
        to: &FileSystem,
        target: &str,
        options: &CreateOptions,
    ) -> Result<()> {
        let mut reader = self.open(path).await?;
        let mut writer = to.create(target, options).await?;
        let copied = loop {
            match reader.next_chunk().await {
                Ok(Some(chunk)) => {
                    if let Err(error) = writer.write(&chunk).await {
                        break Err(error);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let done = match copied {
            Ok(()) => writer.close().await,
            failed => failed,
        };
        if done.is_err() {
            // Half of a file would be taken for all of it. The first error is the one to tell.
            let _ = to.delete(target, false).await;
        }
        done
    }
}
