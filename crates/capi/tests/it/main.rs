//! The library under a program in C, with a NameNode and DataNodes in this process.

mod cluster;
#[path = "../../../cairn/tests/it/collector.rs"]
mod collector;

use cluster::Cluster;
use collector::Collector;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the library, which cargo built beside this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    assert!(folder.join("libcairn_hdfs.so").is_file(), "no library in {}", folder.display());
    folder.to_path_buf()
}

/// Compiles `tests/libhdfs.c` as programs of libhdfs are compiled: with `<hdfs/hdfs.h>` and `-lhdfs`.
fn compile(work: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (include, lib) = (work.join("include/hdfs"), work.join("lib"));
    std::fs::create_dir_all(&include).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::copy(here.join("include/hdfs.h"), include.join("hdfs.h")).unwrap();
    let library = library_folder().join("libcairn_hdfs.so");
    std::os::unix::fs::symlink(library, lib.join("libhdfs.so")).unwrap();
    let program = work.join("libhdfs");
    let done = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(here.join("tests/libhdfs.c"))
        .args(["-I", work.join("include").to_str().unwrap(), "-L", lib.to_str().unwrap(), "-lhdfs"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_of_libhdfs_runs_on_replicated_and_erasure_coded_folders() {
    let cluster = Cluster::start(5).await;
    let work = tempfile::tempdir().unwrap();
    let program = compile(work.path());
    let collector = Collector::start();
    cluster.write_conf(work.path(), &[("cairn.trace.endpoint", &collector.endpoint)]);
    for kind in ["replicated", "ec"] {
        let mut run = Command::new(&program);
        run.arg(cluster.uri())
            .args([format!("/{kind}"), kind.to_string()])
            .env("LD_LIBRARY_PATH", work.path().join("lib"))
            .env("HADOOP_CONF_DIR", work.path());
        let done = tokio::task::spawn_blocking(move || run.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{kind}: {} {said}", done.status);
        assert_eq!(said, "", "nothing is printed");
    }
    // Each call was a trace of its own, with the calls that it made.
    let told = collector.told().concat();
    for part in ["cairn-libhdfs", "\"name\":\"FileSystem::", "\"name\":\"ClientProtocol/"] {
        assert!(told.contains(part), "{part}");
    }
}
