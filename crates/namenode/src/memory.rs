//! How the process takes memory.
#![allow(unsafe_code)]

/// Keeps glibc from holding many times over what the store's cache was given.
///
/// A page of the cache is taken by the thread that reads it, from that thread's part of the heap, and stays a part of
/// it when it is dropped: with several parts the cache's bytes are taken once in each of them, and what is known of
/// blocks, which grows with every report, leaves its holes in each. With a million blocks reported that made 690 MiB
/// of 290. Small pieces come from lists that each thread has in any case. Large buffers, such as full block reports,
/// go back to the system at once. To be called before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_compact() {
    /// Parts of the heap.
    const ARENAS: libc::c_int = 1;
    /// Buffers from that many bytes on are mapped one by one; set, it does not grow any more.
    const MAPPED_LEN: libc::c_int = 256 << 10;
    // SAFETY: `mallopt` takes two numbers and changes how memory is taken from now on; it is called before there are
    // threads that allocate at the same time.
    let done = unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS) == 1
            && libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_LEN) == 1
    };
    if !done {
        tracing::warn!("the allocator cannot be told to keep compact");
    }
}

/// Other allocators need not be told.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_compact() {}
