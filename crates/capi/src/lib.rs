//! The functions of Hadoop's libhdfs over the Cairn client, for C and what calls C.
//!
//! A program that was compiled against Hadoop 3.5.0's `hdfs.h`, or against ours in `include/hdfs.h`,
//! works with this library in the place of libhdfs, and starts no Java machine. Knows nothing of how the
//! client does its work: it translates arguments, answers, errors and memory.
//!
//! Every function catches panics, answers a null pointer with an error, and says in `errno` what went
//! wrong. Handles may be used by several threads at a time, as libhdfs allows; what it forbids (a handle
//! that was freed, a buffer that is too short) cannot be noticed. That contract is in the types of the
//! parameters (`Option<&T>` is a pointer or null, `Option<Box<T>>` one whose memory is given back);
//! strings and buffers are taken apart in `boundary`.
//!
//! Source: Hadoop 3.5.0 `hadoop-hdfs-native-client`, libhdfs.

mod attributes;
mod boundary;
mod builder;
mod configuration;
mod copy;
mod failure;
mod file;
mod info;
mod names;
mod open_file;
mod path;
mod statistics;
mod stream_builder;
mod zero_copy;
