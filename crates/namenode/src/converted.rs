//! What striped files were made of before they were converted, and copies that came to nothing: deleted after a while.

use std::sync::Arc;
use std::time::Duration;

use cairn_namespace::ops::delete::Delete;
use cairn_namespace::query::FileStatus;
use cairn_operate::workers::Worker;
use cairn_wire::converted::DIRECTORY;

use crate::node::NameNode;
use crate::refusal::Refusal;

/// How often to look, at most and at least.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long a copy that no file has got the blocks of stays at least: it may have been closed this moment.
const COPY_STAYS: Duration = Duration::from_secs(3600);

/// Deletes what is old enough, for as long as the NameNode runs.
pub(crate) async fn watch(node: Arc<NameNode>, worker: Arc<Worker>) {
    loop {
        worker.pass().await;
        if !node.holds_work()
            && let Err(refusal) = node.delete_converted(node.now().wall_ms).await
        {
            tracing::warn!(refusal = %refusal.0, "what converted files were made of is not deleted");
            worker.failed(&refusal.0);
        }
        let interval = node.config.keep_converted.clamp(INTERVALS.0, INTERVALS.1);
        worker.rest(tokio::time::sleep(interval)).await;
    }
}

impl NameNode {
    /// Deletes what was kept for long enough at that time. A copy whose writer is gone is closed by the end of its lease,
    /// and its time begins then.
    async fn delete_converted(&self, now_ms: u64) -> Result<(), Refusal> {
        let mut after = String::new();
        loop {
            let (page, more) = self.list_page(DIRECTORY, &after)?;
            for entry in &page {
                if self.is_over(entry, now_ms) {
                    let path = format!("{DIRECTORY}/{}", entry.inode.name);
                    self.submit_own(Delete { path: path.clone(), recursive: true }).await?;
                    tracing::info!(%path, "what a converted file was made of is deleted");
                }
            }
            match page.last() {
                Some(last) if more => after.clone_from(&last.inode.name),
                _ => return Ok(()),
            }
        }
    }

    fn is_over(&self, entry: &FileStatus, now_ms: u64) -> bool {
        let file = entry.inode.file();
        let is_swapped = file.is_some_and(|file| file.redundancy.is_striped());
        let stays = match is_swapped {
            true => self.config.keep_converted,
            false => self.config.keep_converted.max(COPY_STAYS),
        };
        let age_ms = u128::from(now_ms.saturating_sub(entry.inode.mtime));
        file.is_none_or(|file| file.writer.is_none()) && age_ms >= stays.as_millis()
    }
}
