//! The client for Python: what `cairn_fs` makes a file system for fsspec of.
//!
//! Every call that waits lets other threads of Python run meanwhile. Knows nothing of fsspec.

mod client;
mod error;
mod reader;
mod writer;

/// The extension module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::writer::Writer;
}
