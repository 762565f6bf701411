//! What the configuration says, for programs that ask.

use crate::boundary::{Text, free, put, string};
use crate::failure::{Failure, Result, call};
use cairn_conf::Configuration;
use libc::{c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;

/// What Hadoop's own files of defaults say of keys that programs of libhdfs ask for.
///
/// Source: Hadoop 3.5.0 `core-default.xml`, `hdfs-default.xml`.
const DEFAULTS: [(&str, &str); 7] = [
    ("fs.defaultFS", "file:///"),
    ("io.file.buffer.size", "4096"),
    ("fs.permissions.umask-mode", "022"),
    ("dfs.blocksize", "134217728"),
    ("dfs.bytes-per-checksum", "512"),
    ("dfs.replication", "3"),
    ("dfs.client.read.shortcircuit", "false"),
];

/// The files of the environment.
pub fn read() -> Result<Configuration> {
    let found = cairn_conf::of_library(|name| std::env::var_os(name));
    found.map_err(|error| Failure::exception("java.lang.RuntimeException", format!("{error:#}")))
}

fn value(key: &str) -> Result<Option<String>> {
    let default = DEFAULTS.iter().find(|(name, _)| *name == key);
    Ok(read()?.get(key).or_else(|| default.map(|(_, value)| value.to_string())))
}

/// As [`call`], for functions that answer 0 or the error's number.
fn number(what: impl FnOnce() -> Result<()>) -> c_int {
    let mut errno = 0;
    call((), || what().inspect_err(|failure| errno = failure.errno));
    errno
}

/// The value of a key, or null, in memory for [`hdfsConfStrFree`]. 0, or the error's number.
#[unsafe(no_mangle)]
extern "C" fn hdfsConfGetStr(key: Text, place: Option<&mut MaybeUninit<*mut c_char>>) -> c_int {
    number(|| {
        let value = value(key.require()?)?;
        put(place, value.map_or(ptr::null_mut(), |value| string(&value)))
    })
}

/// The whole number that is the value of a key; leaves the place alone when there is none. 0, or the
/// error's number.
#[unsafe(no_mangle)]
extern "C" fn hdfsConfGetInt(key: Text, place: Option<&mut MaybeUninit<i32>>) -> c_int {
    number(|| {
        let Some(value) = value(key.require()?)? else { return Ok(()) };
        let text = value.trim();
        let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => i32::from_str_radix(digits, 16),
            None => text.parse(),
        };
        let class = "java.lang.NumberFormatException";
        let no_number = |_| Failure::exception(class, format!("For input string: \"{text}\""));
        put(place, parsed.map_err(no_number)?)
    })
}

/// Gives back what [`hdfsConfGetStr`] made.
#[unsafe(no_mangle)]
extern "C" fn hdfsConfStrFree(value: *mut c_char) {
    free(value);
}
