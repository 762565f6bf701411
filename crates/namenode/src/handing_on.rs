//! Calls that a member of a quorum of NameNodes hands to the one that leads, so that every member serves clients.
//!
//! A call travels over the leader's RPC port, in a protocol of its own, with all that says whose it is: user, who acts for
//! it, the client's identity and the call's number, how often it was sent, what it says of itself, and the address it came
//! from. It is believed from who has the key of the quorum only (`proof`): each session begins with random bytes of both, each
//! call in it counts once, and what is changed on the way is not taken. With Kerberos both sides are NameNodes by their
//! principals too, and `hadoop.rpc.protection` says whether what they say is encrypted; without it nothing is.
//!
//! While nobody leads a call waits; one that was under way when its leader died is repeated at the next one, which knows by
//! its number whether it was carried out.

mod call;
mod proof;
mod sends;
mod takes;

pub use call::{BY_PAGES, PROTOCOL};
pub use proof::Secret;
pub use sends::{Handed, HandsOn};
pub use takes::Takes;

#[cfg(test)]
mod tests;
