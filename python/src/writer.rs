//! A file open for writing.

use crate::error::{closed, os_error};
use cairn_client::{Blocking, FileWriter, Kept};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file open for writing. What was not closed may be lost.
#[pyclass(frozen, module = "cairn_fs._native")]
pub struct Writer {
    blocking: Blocking,
    writer: Mutex<Option<Kept<FileWriter>>>,
}

impl Writer {
    /// Wraps an opened file.
    pub fn new(blocking: Blocking, writer: FileWriter) -> Writer {
        Writer { blocking, writer: Mutex::new(Some(blocking.keep(writer))) }
    }

    fn writer(&self) -> MutexGuard<'_, Option<Kept<FileWriter>>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, data: &[u8]) -> PyResult<usize> {
        let mut writer = self.writer();
        let writer = writer.as_mut().ok_or_else(closed)?;
        self.blocking.wait(writer.write(data)).map_err(os_error)?;
        Ok(data.len())
    }
}

#[pymethods]
impl Writer {
    /// Writes all bytes of an object; returns how many.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        // Bytes never change, so they can be read while other threads run; anything else is copied first.
        if let Ok(bytes) = data.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            return py.detach(|| self.write_all(bytes));
        }
        let bytes = PyBuffer::<u8>::get(data)?.to_vec(py)?;
        py.detach(|| self.write_all(&bytes))
    }

    /// Bytes of the file so far.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| Ok(self.writer().as_ref().ok_or_else(closed)?.position()))
    }

    /// Returns when new readers see what was written, and with `durable` when it is on stable storage.
    /// Fails for erasure coded files.
    #[pyo3(signature = (durable=false))]
    fn sync(&self, py: Python<'_>, durable: bool) -> PyResult<()> {
        py.detach(|| {
            let mut writer = self.writer();
            let writer = writer.as_mut().ok_or_else(closed)?;
            let call = async { if durable { writer.hsync().await } else { writer.hflush().await } };
            self.blocking.wait(call).map_err(os_error)
        })
    }

    /// Ends the file. Nothing happens the second time.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| match self.writer().take() {
            Some(writer) => self.blocking.wait(writer.into_inner().close()).map_err(os_error),
            None => Ok(()),
        })
    }
}
