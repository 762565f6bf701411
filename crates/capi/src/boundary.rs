//! What C hands over and gets back: strings, buffers, memory of `malloc`. All pointers are followed here.

use crate::failure::{Failure, Result};
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr;

/// A string of C, or null.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The string; `None` when it is null. Fails when it is not UTF-8.
    pub fn get(&self) -> Result<Option<&str>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: not null, so the caller of the exported function passed a string that ends with a zero
        // byte and lives until that function returns; `self` does not outlive it.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(Some).map_err(|_| Failure::argument("a string is not UTF-8"))
    }

    /// The string, which must not be null.
    pub fn require(&self) -> Result<&str> {
        self.get()?.ok_or_else(null)
    }
}

/// What a null pointer is answered with.
pub fn null() -> Failure {
    Failure::argument("a pointer is null")
}

/// Puts a result where C wants it.
pub fn put<T>(place: Option<&mut MaybeUninit<T>>, value: T) -> Result<()> {
    place.ok_or_else(null)?.write(value);
    Ok(())
}

/// A buffer of C to read into; `None` when there is nothing to read.
pub fn buffer_mut<'a>(start: *mut c_void, len: i32) -> Result<Option<&'a mut [u8]>> {
    let len = usize::try_from(len).map_err(|_| Failure::argument("a length is negative"))?;
    match (len, start.is_null()) {
        (0, _) => Ok(None),
        (_, true) => Err(null()),
        // SAFETY: the caller of the exported function passed `len` bytes that are its own until the
        // function returns. They may be uninitialised; they are only written to.
        _ => Ok(Some(unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), len) })),
    }
}

/// A buffer of C to write from; `None` when there is nothing to write.
pub fn buffer<'a>(start: *const c_void, len: i32) -> Result<Option<&'a [u8]>> {
    let len = usize::try_from(len).map_err(|_| Failure::argument("a length is negative"))?;
    match (len, start.is_null()) {
        (0, _) => Ok(None),
        (_, true) => Err(null()),
        // SAFETY: the caller of the exported function passed `len` bytes that nobody changes until the
        // function returns.
        _ => Ok(Some(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) })),
    }
}

/// Copies a string with its zero byte into a buffer of C. False when it does not fit.
pub fn fill(start: *mut c_char, len: usize, text: &str) -> bool {
    let bytes = text.as_bytes();
    if start.is_null() || bytes.len() >= len {
        return false;
    }
    // SAFETY: the caller of the exported function passed `len` bytes, more than are written here.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast::<u8>(), bytes.len());
        start.add(bytes.len()).write(0);
    }
    true
}

/// A string in memory of `malloc`; null when there is no memory. Cut at a zero byte.
pub fn string(text: &str) -> *mut c_char {
    let text = text.split('\0').next().unwrap_or_default();
    let Ok(text) = CString::new(text) else { return ptr::null_mut() };
    // SAFETY: it ends with a zero byte.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// The string as [`string`] makes it, with a number behind its end for [`number_behind`].
pub fn string_with(text: &str, number: c_int) -> *mut c_char {
    let text = text.split('\0').next().unwrap_or_default();
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(number_offset(bytes.len()), 0);
    bytes.extend(number.to_ne_bytes());
    array(&bytes).map_or(ptr::null_mut(), |start| start.cast())
}

/// The number behind a string that [`string_with`] made.
pub fn number_behind(text: *const c_char) -> c_int {
    // SAFETY: the caller of the exported function passes what another one of this library returned: a string that
    // ends with a zero byte, with a number at the offset where `string_with` has put it.
    unsafe {
        let len = CStr::from_ptr(text).count_bytes();
        text.add(number_offset(len)).cast::<c_int>().read_unaligned()
    }
}

/// Where the number is behind a string of `len` bytes and its zero.
///
/// Source: Hadoop 3.5.0 libhdfs, `getExtendedFileInfoOffset`.
fn number_offset(len: usize) -> usize {
    (len + 1).next_multiple_of(8)
}

/// Items in one piece of memory of `malloc`; a piece of one byte when there are none.
pub fn array<T: Copy>(items: &[T]) -> Result<*mut T> {
    // SAFETY: any size may be asked for.
    let start = unsafe { libc::malloc(size_of_val(items).max(1)) }.cast::<T>();
    if start.is_null() {
        return Err(Failure::out_of_memory());
    }
    // SAFETY: the new memory has room for the items, and `malloc` aligns for every type of C.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr(), start, items.len()) };
    Ok(start)
}

/// Gives back memory that [`string`] or [`array`] made; nothing when it is null.
pub fn free<T>(start: *mut T) {
    // SAFETY: the caller of the exported function passes what another one of this library returned, once.
    unsafe { libc::free(start.cast::<c_void>()) }
}

/// The items of an array that [`array`] made.
pub fn items<'a, T>(start: *const T, len: usize) -> &'a [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the caller of the exported function passes what another one of this library returned, with
    // the number of items that it told.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// The items of an array that ends with a null pointer.
pub fn pointers<'a, T>(start: *const *mut T) -> &'a [*mut T] {
    let mut len = 0;
    // SAFETY: the array has an item that is null, and none behind it is looked at.
    while !start.is_null() && !unsafe { *start.add(len) }.is_null() {
        len += 1;
    }
    items(start, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_arrays_go_to_c_and_back() {
        let text = string("a\u{e9}\0b");
        assert_eq!(Text(text).require().unwrap(), "a\u{e9}");
        assert!(Text(ptr::null()).get().unwrap().is_none());
        let list = array(&[text, ptr::null_mut()]).unwrap();
        assert_eq!(pointers(list), [text]);
        assert!(pointers::<c_char>(ptr::null()).is_empty());
        free(text);
        free(list);
        let empty = array::<u64>(&[]).unwrap();
        assert!(!empty.is_null());
        free(empty);
        free::<u8>(ptr::null_mut());
    }

    #[test]
    fn a_string_is_only_copied_where_it_fits() {
        let mut place = [7u8; 5];
        let start = place.as_mut_ptr().cast::<c_char>();
        assert!(!fill(start, 3, "abc") && !fill(ptr::null_mut(), 9, "abc"));
        assert_eq!(place, [7; 5]);
        assert!(fill(start, 4, "abc"));
        assert_eq!(place, *b"abc\0\x07");
    }

    #[test]
    fn lengths_and_nulls_are_looked_at() {
        assert!(buffer(ptr::null(), 0).unwrap().is_none());
        assert!(buffer(ptr::null(), 1).is_err() && buffer(b"x".as_ptr().cast(), -1).is_err());
        assert!(
            buffer_mut(ptr::null_mut(), 1).is_err() && buffer_mut(ptr::null_mut(), -1).is_err()
        );
        assert_eq!(buffer(b"xyz".as_ptr().cast(), 2).unwrap(), Some(&b"xy"[..]));
    }
}
