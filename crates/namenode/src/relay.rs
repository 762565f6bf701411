//! Pages of the cluster at a member of a quorum that follows: it has the leader make them, and passes them on.
//!
//! Requests travel as calls that are handed on ([`crate::handing_on`]), so a page needs no port, no address and no
//! certificate beside those of RPC, who asks and from where is believed from members only, and while nobody leads it
//! waits as calls do. What is made while it is sent (the text of a check, an image, what has changed on a page) comes piece
//! by piece, each as it is asked for. Which DataNode a client of WebHDFS is sent to is the leader's to say likewise. Tickets and cookies stay where they were shown.
//!
//! Tested in `relay/tests.rs`, and with members in `tests/it/replica_pages.rs`.

mod asks;
mod makes;

pub(crate) use asks::{Leads, Relay, Relayed, not_now};
pub(crate) use makes::Makes;

#[cfg(test)]
mod tests;

/// Calls of this protocol are for what makes pages.
const PROTOCOL: &str = "cairn.PagesProtocol";

/// Asks for a page.
const PAGE: &str = "page";

/// Asks which DataNode a client by HTTP is to be sent to.
const CHOICE: &str = "choice";

/// Asks for the next piece of one that is made while it is sent.
const PIECE: &str = "piece";

/// The number of the piece that is asked for by who wants no more.
const NO_MORE: u32 = u32::MAX;
