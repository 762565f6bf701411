//! What the quick start tells at its end.

use crate::cluster::Cluster;
use crate::output::{megabytes_per_second, size, table};
use serde_json::{Value, json};
use std::time::Duration;

/// Where stripes have taken more room than copies.
const SMALL: &str = "\n\
    These files are small: one that is shorter than a cell (1 MiB) takes its length four times in a stripe, and three\n\
    times as copies. Larger ones save room: see docs/choosing.md.\n";

/// What one way of storing cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Bytes in the DataNodes' folders, checksums included.
    pub disk: u64,
    /// To write all files.
    pub write: Duration,
    /// To read and compare all files.
    pub read: Duration,
    /// The same with DataNodes stopped.
    pub degraded: Duration,
}

/// All figures of a run in which every byte was the same.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Files stored.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Striped as they were written.
    pub coded: Measured,
    /// In contiguous groups, as far as that saves enough.
    pub contiguous: Measured,
    /// Three-fold replicated.
    pub copied: Measured,
    /// DataNodes stopped before the degraded reads.
    pub stopped: usize,
}

impl Summary {
    /// The table for people.
    pub fn as_text(&self) -> String {
        let Summary { files, bytes, coded, contiguous, copied, stopped } = self;
        let row = |name: &str, value: &dyn Fn(&Measured) -> String| {
            vec![name.to_string(), value(coded), value(contiguous), value(copied)]
        };
        let rate = |time: Duration| format!("{:.0} MB/s", megabytes_per_second(*bytes, time));
        let rows = [
            ["", "RS-6-3-1024k", "RS-6-3-contiguous", "3 copies"].map(String::from).to_vec(),
            row("logical bytes", &|_| size(*bytes)),
            row("bytes on disk", &|m| {
                format!("{} ({:.2}x)", size(m.disk), m.disk as f64 / (*bytes).max(1) as f64)
            }),
            row("write", &|m| rate(m.write)),
            row("read", &|m| rate(m.read)),
            row(&format!("read, {stopped} DataNodes gone"), &|m| rate(m.degraded)),
            row("byte for byte", &|_| format!("{files} of {files} equal")),
        ];
        let note = if coded.disk > copied.disk { SMALL } else { "" };
        table(&rows) + note
    }

    /// The same for programs; times in seconds.
    pub fn as_json(&self) -> Value {
        let one = |m: &Measured| {
            json!({
                "disk_bytes": m.disk,
                "write_seconds": m.write.as_secs_f64(),
                "read_seconds": m.read.as_secs_f64(),
                "degraded_read_seconds": m.degraded.as_secs_f64(),
            })
        };
        json!({
            "files": self.files, "bytes": self.bytes, "equal_files": self.files,
            "datanodes_stopped": self.stopped,
            "erasure_coded": one(&self.coded),
            "contiguous": one(&self.contiguous),
            "replicated": one(&self.copied),
        })
    }
}

/// How other programs reach a cluster that goes on.
pub fn how_to_connect(cluster: &Cluster) -> String {
    let uri = cluster.uri();
    let conf = cluster.conf_folder();
    let conf = conf.display();
    format!(
        "\nThe cluster runs on; stop it with Ctrl-C.\n\
         \n  cairn     cairn fs --fs {uri} ls -R /quickstart\
         \n  Hadoop    hdfs --config {conf} dfs -ls -R /quickstart\
         \n  Spark     spark-shell --conf spark.hadoop.fs.defaultFS={uri}\
         \n  Python    pip install hdfs-native, then\
         \n            hdfs_native.Client(\"{uri}\").list_status(\"/quickstart\")\n"
    )
}
