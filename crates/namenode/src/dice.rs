//! Numbers by chance.

use std::cell::Cell;

/// A number for the cluster's choices, of which each reader needs some: drawn by a generator that each thread has, and
/// that begins where the system says.
pub(crate) fn dice() -> u64 {
    thread_local! {
        // Without randomness choices are still right, only not spread.
        static STATE: Cell<u64> = Cell::new(getrandom::u64().unwrap_or(0));
    }
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
