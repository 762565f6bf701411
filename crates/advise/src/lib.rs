//! What directories take, what they would take in copies, stripes or contiguous groups, how safe that is, what it costs,
//! and which of it to choose.
//!
//! A [`Census`] is told of directories and files, by [`image::read`] from Hadoop's fsimage or by whoever lists a running
//! cluster, and knows them by rows, one for each directory that is to be told of. [`durability`] and [`money`] judge
//! what a row takes, [`advice`] chooses. No file is opened here and no clock read.

pub mod advice;
pub mod audit;
pub mod census;
pub mod durability;
pub mod gears;
pub mod image;
pub mod layout;
pub mod money;
mod packing;
mod parents;
pub mod tally;

pub use census::{Census, FileFacts, Row};
pub use layout::{Cost, Layout};
pub use tally::Tally;
