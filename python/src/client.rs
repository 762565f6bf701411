//! A file system: names, attributes, opening files, reading many ranges at a time.

use crate::directory::{Directory, describe};
use crate::error::os_error;
use crate::reader::Reader;
use crate::writer::Writer;
use bytes::Bytes;
use cairn_client::{
    Blocking, ChecksumMode, ClientError, CreateOptions, FileSystem, Kept, RangeOptions, Result,
};
use cairn_conf::trace;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A connection to a file system, as one user. `uri` is `hdfs://HOST:PORT`, or `default` for the
/// configuration of the environment; `options` sets keys of that configuration.
#[pyclass(frozen, module = "cairn_fs._native")]
pub struct Client {
    fs: Kept<FileSystem>,
    blocking: Blocking,
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{error:#}"))
}

impl Client {
    /// Waits for a call, while other threads of Python run.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        call: impl Future<Output = Result<T>> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.blocking.wait(call)).map_err(os_error)
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (uri="default", user=None, options=None))]
    fn new(
        py: Python<'_>,
        uri: &str,
        user: Option<String>,
        options: Option<HashMap<String, String>>,
    ) -> PyResult<Client> {
        let mut conf = cairn_conf::of_library(|name| std::env::var_os(name)).map_err(wrong)?;
        for (key, value) in options.unwrap_or_default() {
            conf.set(&key, value);
        }
        if uri != "default" {
            conf.set("fs.defaultFS", uri);
        }
        let mut config = cairn_conf::client::read(&conf).map_err(wrong)?;
        if let Some(user) = user {
            config.act_as(&user).map_err(os_error)?;
        }
        py.detach(|| {
            let blocking = Blocking::of_process()?;
            let traced = blocking.enter().map(|_runtime| trace::begin(&conf, "cairn-python"))?;
            traced.map_err(|error| ClientError::Argument(format!("{error:#}")))?;
            let fs = blocking.wait(async { FileSystem::new(config) })?;
            Ok(Client { fs: blocking.keep(fs), blocking })
        })
        .map_err(os_error)
    }

    /// `host:port` of the NameNode, or the name of a nameservice.
    #[getter]
    fn namenode(&self) -> &str {
        &self.fs.config().namenode
    }

    /// The user who asks.
    #[getter]
    fn user(&self) -> &str {
        &self.fs.config().user
    }

    /// What a path names, or None.
    fn info<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let status = self.wait(py, self.fs.file_info(path))?;
        status.map(|status| describe(py, &status)).transpose()
    }

    /// The entries of a directory, or the file itself.
    fn list<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyList>> {
        let entries = self.wait(py, self.fs.list(path).collect())?;
        let entries = entries.iter().map(|status| describe(py, status));
        PyList::new(py, entries.collect::<PyResult<Vec<_>>>()?)
    }

    /// The entries of a directory one after the other, with the bytes of short files.
    fn read_directory(&self, path: &str) -> Directory {
        Directory::new(self.blocking, self.fs.read_directory(path))
    }

    /// Makes a directory; true also when it was there.
    #[pyo3(signature = (path, parents=true, mode=0o777))]
    fn mkdir(&self, py: Python<'_>, path: &str, parents: bool, mode: u16) -> PyResult<bool> {
        match parents {
            true => self.wait(py, self.fs.mkdirs(path, mode)),
            false => self.wait(py, self.fs.mkdir(path, mode)),
        }
    }

    /// Deletes a file or directory; false when nothing was there.
    #[pyo3(signature = (path, recursive=false))]
    fn delete(&self, py: Python<'_>, path: &str, recursive: bool) -> PyResult<bool> {
        self.wait(py, self.fs.delete(path, recursive))
    }

    /// Moves a file or directory to exactly `target`, over a file or empty directory if `overwrite`.
    #[pyo3(signature = (path, target, overwrite=false))]
    fn rename(&self, py: Python<'_>, path: &str, target: &str, overwrite: bool) -> PyResult<()> {
        self.wait(py, self.fs.rename_to(path, target, overwrite))
    }

    /// Copies a file over what is at `target`.
    fn copy(&self, py: Python<'_>, path: &str, target: &str) -> PyResult<()> {
        if path == target {
            return Err(wrong(format!("{path} is copied to itself")));
        }
        let options =
            CreateOptions { overwrite: true, create_parents: true, ..CreateOptions::default() };
        self.wait(py, self.fs.copy_file(path, &self.fs, target, &options))
    }

    /// Opens a file for reading.
    fn open(&self, py: Python<'_>, path: &str) -> PyResult<Reader> {
        let reader = self.wait(py, self.fs.open(path))?;
        Ok(Reader::new(self.blocking, reader))
    }

    /// Makes a file and opens it for writing. `policy` is the name of an erasure coding policy; without
    /// one the directory's counts, unless `replicate`.
    #[pyo3(signature = (
        path, overwrite=false, parents=true, replication=None, block_size=None, policy=None,
        replicate=false, mode=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn create(
        &self,
        py: Python<'_>,
        path: &str,
        overwrite: bool,
        parents: bool,
        replication: Option<u16>,
        block_size: Option<u64>,
        policy: Option<String>,
        replicate: bool,
        mode: Option<u16>,
    ) -> PyResult<Writer> {
        let options = CreateOptions {
            overwrite,
            create_parents: parents,
            replication,
            block_size,
            policy,
            should_replicate: replicate,
            permission: mode,
            masked: None,
        };
        let writer = self.wait(py, self.fs.create(path, &options))?;
        Ok(Writer::new(self.blocking, writer))
    }

    /// Opens a replicated file to write behind its end.
    fn append(&self, py: Python<'_>, path: &str) -> PyResult<Writer> {
        let writer = self.wait(py, self.fs.append(path))?;
        Ok(Writer::new(self.blocking, writer))
    }

    /// Cuts a replicated file; false while its last block is still being cut.
    fn truncate(&self, py: Python<'_>, path: &str, size: u64) -> PyResult<bool> {
        self.wait(py, self.fs.truncate(path, size))
    }

    /// Reads ranges of files, `concurrency` at a time: a list of bytes, or of the exceptions for those
    /// that failed. A negative bound counts from the end of the file, None is its begin or end. Ranges with at most
    /// `max_gap` bytes between them are read as one.
    #[pyo3(signature = (ranges, concurrency=32, max_gap=None))]
    fn read_ranges<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(String, Option<i64>, Option<i64>)>,
        concurrency: usize,
        max_gap: Option<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut options = RangeOptions { at_once: concurrency, ..RangeOptions::default() };
        options.max_gap = max_gap.unwrap_or(options.max_gap);
        let read = self.wait(py, read_ranges(self.fs.clone(), ranges, options))?;
        let answers = PyList::empty(py);
        for answer in read {
            match answer {
                Ok(bytes) => answers.append(PyBytes::new(py, &bytes))?,
                Err(error) => answers.append(os_error(error).value(py))?,
            }
        }
        Ok(answers)
    }

    /// The algorithm and the bytes of a file's checksum, as Hadoop has it; None for directories. With
    /// `composite` it does not depend on how the file is stored.
    #[pyo3(signature = (path, composite=false))]
    fn checksum<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        composite: bool,
    ) -> PyResult<Option<(String, Bound<'py, PyBytes>)>> {
        let mode = if composite { ChecksumMode::CompositeCrc } else { ChecksumMode::Md5Md5Crc };
        let checksum = self.wait(py, self.fs.checksum(path, mode))?;
        Ok(checksum.map(|sum| (sum.algorithm, PyBytes::new(py, &sum.bytes))))
    }

    /// Sets the permission bits.
    fn chmod(&self, py: Python<'_>, path: &str, mode: u16) -> PyResult<()> {
        self.wait(py, self.fs.set_permission(path, mode))
    }

    /// Sets owner, group or both.
    #[pyo3(signature = (path, owner=None, group=None))]
    fn chown(
        &self,
        py: Python<'_>,
        path: &str,
        owner: Option<&str>,
        group: Option<&str>,
    ) -> PyResult<()> {
        self.wait(py, self.fs.set_owner(path, owner, group))
    }

    /// Sets the times, milliseconds since 1970; None leaves one as it is.
    #[pyo3(signature = (path, modified_ms=None, accessed_ms=None))]
    fn utime(
        &self,
        py: Python<'_>,
        path: &str,
        modified_ms: Option<u64>,
        accessed_ms: Option<u64>,
    ) -> PyResult<()> {
        self.wait(py, self.fs.set_times(path, modified_ms, accessed_ms))
    }

    /// Sets how many copies a replicated file has; false for directories.
    fn set_replication(&self, py: Python<'_>, path: &str, replication: u16) -> PyResult<bool> {
        self.wait(py, self.fs.set_replication(path, replication))
    }

    /// The name of the erasure coding policy of a path, or None.
    fn ec_policy(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        let policy = self.wait(py, self.fs.policy(path))?;
        Ok(policy.map(|policy| policy.name.to_string()))
    }

    /// Sets the erasure coding policy of a directory; None takes it off.
    #[pyo3(signature = (path, policy))]
    fn set_ec_policy(&self, py: Python<'_>, path: &str, policy: Option<&str>) -> PyResult<()> {
        match policy {
            Some(name) => self.wait(py, self.fs.set_policy(path, Some(name))),
            None => self.wait(py, self.fs.unset_policy(path)),
        }
    }

    /// Lets directories have an erasure coding policy.
    fn enable_ec_policy(&self, py: Python<'_>, policy: &str) -> PyResult<()> {
        self.wait(py, self.fs.enable_policy(policy))
    }

    /// Bytes of all volumes, those that blocks take, and those that are free.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.wait(py, self.fs.stats())?;
        let told = PyDict::new(py);
        told.set_item("capacity", stats.capacity)?;
        told.set_item("used", stats.used)?;
        told.set_item("remaining", stats.remaining)?;
        Ok(told)
    }

    /// The blocks of a range of bytes: offset, length, and the hosts that have them.
    #[pyo3(signature = (path, offset=0, length=None))]
    fn blocks<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        offset: u64,
        length: Option<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let length = length.unwrap_or(u64::MAX);
        let blocks = self.wait(py, self.fs.block_locations(path, offset, length))?;
        let told = PyList::empty(py);
        for block in &blocks.blocks {
            let one = PyDict::new(py);
            one.set_item("offset", block.offset_in_file)?;
            one.set_item("length", block.block.len)?;
            let hosts = block.locations.iter().map(|location| location.addr.host.as_str());
            one.set_item("hosts", hosts.collect::<Vec<_>>())?;
            told.append(one)?;
        }
        Ok(told)
    }
}

/// Each file is opened once, however many ranges are read of it.
async fn read_ranges(
    fs: FileSystem,
    ranges: Vec<(String, Option<i64>, Option<i64>)>,
    options: RangeOptions,
) -> Result<Vec<Result<Bytes>>> {
    let turns = Arc::new(Semaphore::new(options.at_once.max(1)));
    let mut opening = HashMap::new();
    for (path, _, _) in &ranges {
        if !opening.contains_key(path) {
            let (fs, turns, name) = (fs.clone(), turns.clone(), path.clone());
            let task = tokio::spawn(async move {
                let _turn = turns.acquire().await;
                fs.open(&name).await
            });
            opening.insert(path.clone(), task);
        }
    }
    let mut readers = HashMap::new();
    for (path, task) in opening {
        let opened = task.await.map_err(|panic| ClientError::Protocol(panic.to_string()))?;
        readers.insert(path, opened);
    }
    let mut wanted = Vec::new();
    for (path, start, end) in &ranges {
        if let Some(Ok(reader)) = readers.get(path) {
            let at = |bound: i64| match u64::try_from(bound) {
                Ok(at) => at,
                Err(_) => reader.len().saturating_sub(bound.unsigned_abs()),
            };
            wanted.push((reader, start.map_or(0, at)..end.map_or(reader.len(), at)));
        }
    }
    let mut read = cairn_client::read_ranges(&wanted, &options).await.into_iter();
    let mut answers = Vec::new();
    for (path, _, _) in ranges {
        let gone = || Err(ClientError::NotFound { path: path.clone() });
        answers.push(match readers.get(&path) {
            Some(Ok(_)) => read.next().unwrap_or_else(gone),
            Some(Err(error)) => Err(again(&path, error)),
            None => gone(),
        });
    }
    Ok(answers)
}

/// The error of a file that could not be opened, for each of its ranges.
fn again(path: &str, error: &ClientError) -> ClientError {
    match error {
        ClientError::NotFound { path } => ClientError::NotFound { path: path.clone() },
        ClientError::Remote { class, message } => {
            ClientError::Remote { class: class.clone(), message: message.clone() }
        }
        other => ClientError::Protocol(format!("{path}: {other}")),
    }
}
