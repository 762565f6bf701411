//! A file open for reading.

use crate::error::{closed, os_error};
use cairn_client::{Blocking, FileReader, Kept, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file open for reading. Several threads may use it; `read` has one place,
/// `read_at` has none.
#[pyclass(frozen, module = "cairn_fs._native")]
pub struct Reader {
    blocking: Blocking,
    size: u64,
    positional: Kept<FileReader>,
    sequential: Mutex<Option<Kept<FileReader>>>,
}

/// Reads the next bytes, as many as there are; in vain, none.
async fn fill(reader: &mut FileReader, buf: &mut [u8]) -> Result<usize> {
    let (begin, mut filled) = (reader.position(), 0);
    while filled < buf.len() {
        match reader.read(&mut buf[filled..]).await {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) => {
                reader.seek(begin);
                return Err(error);
            }
        }
    }
    Ok(filled)
}

impl Reader {
    /// Wraps an opened file.
    pub fn new(blocking: Blocking, reader: FileReader) -> Reader {
        let sequential = Mutex::new(Some(blocking.keep(reader.another())));
        Reader { blocking, size: reader.len(), positional: blocking.keep(reader), sequential }
    }

    fn sequential(&self) -> MutexGuard<'_, Option<Kept<FileReader>>> {
        self.sequential.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self) -> PyResult<u64> {
        Ok(self.sequential().as_ref().ok_or_else(closed)?.position())
    }

    /// Reads the next bytes if they are those from `position` on; `None` if another thread has gone on.
    fn fill(&self, position: u64, buf: &mut [u8]) -> PyResult<Option<usize>> {
        let mut sequential = self.sequential();
        let sequential = sequential.as_mut().ok_or_else(closed)?;
        if sequential.position() != position {
            return Ok(None);
        }
        self.blocking.wait(fill(sequential, buf)).map(Some).map_err(os_error)
    }

    /// How many of `wanted` bytes there are from `position` on; all that are left for a negative number.
    fn left(&self, position: u64, wanted: i64) -> usize {
        let left = self.size.saturating_sub(position);
        let count = u64::try_from(wanted).map_or(left, |wanted| wanted.min(left));
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

#[pymethods]
impl Reader {
    /// Bytes of the file when it was opened.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// Reads the next bytes, up to the end when `count` is negative.
    #[pyo3(signature = (count=-1))]
    fn read<'py>(&self, py: Python<'py>, count: i64) -> PyResult<Bound<'py, PyBytes>> {
        loop {
            let position = py.detach(|| self.position())?;
            let mut is_here = true;
            let bytes = PyBytes::new_with(py, self.left(position, count), |buf| {
                match py.detach(|| self.fill(position, buf))? {
                    Some(filled) => short(filled, buf.len()),
                    None => {
                        is_here = false;
                        Ok(())
                    }
                }
            })?;
            // Else it was made for the length that was left elsewhere.
            if is_here {
                return Ok(bytes);
            }
        }
    }

    /// Reads bytes at a position, and leaves the place of the next read alone.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        position: u64,
        count: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.left(position, count), |buf| {
            let read = self.positional.read_at(position, buf);
            let filled = py.detach(|| self.blocking.wait(read)).map_err(os_error)?;
            short(filled, self.left(position, count))
        })
    }

    /// Sets the place of the next read.
    fn seek(&self, py: Python<'_>, position: u64) -> PyResult<u64> {
        py.detach(|| {
            self.sequential().as_mut().ok_or_else(closed)?.seek(position);
            Ok(position)
        })
    }

    /// The place of the next read.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.position())
    }

    /// Gives up what was read ahead. What was closed cannot be read in order any more.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let _on_runtime = self.blocking.enter().ok();
            *self.sequential() = None;
        });
    }
}

fn short(filled: usize, wanted: usize) -> PyResult<()> {
    if filled == wanted {
        Ok(())
    } else {
        Err(pyo3::exceptions::PyEOFError::new_err("the file is cut short"))
    }
}
