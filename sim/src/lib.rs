//! The cluster's cores under simulated time and faults.
//!
//! The operations of the NameNode, the writer's sequences and the recoveries that ship run together, over the real
//! namespace, redundancy, replica, stripe and codec crates, with disks and a network that are simulated, in one thread and
//! from one seed. Invariants are checked after each step (`src/invariants.rs`); a seed that fails replays exactly.

mod bytes;
mod calls;
mod client;
mod clones;
mod data_node;
mod encoding;
mod fault_kinds;
mod faults;
mod invariants;
mod model;
mod mover;
mod name_node;
mod node_work;
mod operator;
mod options;
mod packing;
pub mod parts;
mod ration;
mod restored;
mod rng;
mod shrink;
mod tasks;
mod world;

pub use fault_kinds::KINDS as FAULT_KINDS;
pub use options::{Options, Report};
pub use parts::{Parts, Right};
pub use shrink::shrink;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one seed. A panic of a core is a violation too.
pub fn run(seed: u64, options: Options, parts: &mut dyn Parts) -> Report {
    let world = || world::World::new(seed, options, parts).run();
    catch_unwind(AssertUnwindSafe(world)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        let why = format!("panic: {}", text.unwrap_or_default());
        Report { violation: Some(why), ..Report::default() }
    })
}
