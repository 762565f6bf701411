//! Where files are copied to that are converted from stripes to plain blocks, and what they were made of stays a while.

/// The directory, of the superuser alone. In it are copies that are being written; once a file has got the blocks of its
/// copy, the copy has those of the file, for readers that had found them.
pub const DIRECTORY: &str = "/system/cairn/converted";
