//! The client for Python: what `cairn_fs` makes a file system for fsspec of.
//!
//! Every call that waits lets other threads of Python run meanwhile. Knows nothing of fsspec.

mod client;
mod directory;
mod error;
mod reader;
mod writer;

/// The extension module.
#[pyo3::pymodule]
mod _native {
    use cairn_client::Blocking;
    use cairn_conf::trace;
    use pyo3::prelude::*;

    /// Has the interpreter send what is left of traces before it ends.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let flush = wrap_pyfunction!(flush, module)?;
        module.py().import("atexit")?.call_method1("register", (flush,))?;
        Ok(())
    }

    /// Waits a moment until what has ended is sent to the collector of traces, if there is one.
    #[pyfunction]
    fn flush(py: Python<'_>) {
        if !trace::is_on() {
            return;
        }
        // A program that ends has nobody to tell that this failed.
        let _ = py.detach(|| {
            Blocking::of_process()?.wait(async {
                trace::flush().await;
                Ok(())
            })
        });
    }

    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::directory::Directory;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::writer::Writer;
}
