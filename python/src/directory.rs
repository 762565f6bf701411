//! Entries of directories as Python has them, and a directory whose short files are read many at a time.

use crate::error::os_error;
use cairn_client::{Blocking, DirectoryReader, FileStatus, FileType, Kept};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, PoisonError};

/// An entry, and the bytes of a short file.
type Entry<'py> = (Bound<'py, PyDict>, Option<Bound<'py, PyBytes>>);

/// The entries of a directory in the order of their names. Several threads may take them.
#[pyclass(frozen, module = "cairn_fs._native")]
pub struct Directory {
    blocking: Blocking,
    reader: Mutex<Kept<DirectoryReader>>,
}

impl Directory {
    pub fn new(blocking: Blocking, reader: DirectoryReader) -> Directory {
        Directory { blocking, reader: Mutex::new(blocking.keep(reader)) }
    }
}

#[pymethods]
impl Directory {
    /// The next entry, with its bytes unless it is to be opened; None at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Entry<'py>>> {
        let next = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            self.blocking.wait(reader.next())
        });
        let Some((status, bytes)) = next.map_err(os_error)? else { return Ok(None) };
        let bytes = bytes.map(|bytes| PyBytes::new(py, &bytes));
        Ok(Some((describe(py, &status)?, bytes)))
    }
}

/// What fsspec calls the details of a path.
pub(crate) fn describe<'py>(py: Python<'py>, status: &FileStatus) -> PyResult<Bound<'py, PyDict>> {
    let kind = match status.file_type {
        FileType::Directory => "directory",
        FileType::File => "file",
        FileType::Symlink => "link",
    };
    let told = PyDict::new(py);
    told.set_item("name", &status.path)?;
    told.set_item("size", status.len)?;
    told.set_item("type", kind)?;
    told.set_item("mode", status.permission)?;
    told.set_item("owner", &status.owner)?;
    told.set_item("group", &status.group)?;
    told.set_item("mtime", status.modification_time_ms as f64 / 1000.0)?;
    told.set_item("atime", status.access_time_ms as f64 / 1000.0)?;
    told.set_item("replication", status.replication)?;
    told.set_item("block_size", status.block_size)?;
    told.set_item("file_id", status.file_id)?;
    told.set_item("ec_policy", status.policy.as_ref().map(|policy| policy.name.to_string()))?;
    Ok(told)
}
