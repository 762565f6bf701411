//! A directory whose short files are read many at a time.

use crate::client::describe;
use crate::error::os_error;
use cairn_client::{Blocking, DirectoryReader, Kept};
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
