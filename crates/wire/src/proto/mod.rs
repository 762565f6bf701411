//! Hadoop's protobuf messages, one module for each protobuf package.
//!
//! The files beside this one are written by `cargo xtask proto`; a nested type `Outer.Inner` is
//! `OuterInner`. A message leaves this crate only into the `protocol` folders of the shells.

#[rustfmt::skip]
pub mod common;
#[rustfmt::skip]
pub mod datanode;
#[rustfmt::skip]
pub mod datanodelifeline;
#[rustfmt::skip]
pub mod fs;
#[rustfmt::skip]
pub mod hdfs;
#[rustfmt::skip]
pub mod namenode;
