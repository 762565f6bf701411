//! Which kinds of faults a simulation has.

use crate::options::Options;
use crate::rng::Rng;

/// Which kinds of faults a simulation has.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) left: u32,
    /// Calls and answers are lost, come again or come late.
    pub(crate) network: bool,
    /// Clients die.
    pub(crate) clients: bool,
    /// Bits flip in the memory of nodes that rebuild.
    pub(crate) memory: bool,
    pub(crate) nodes: bool,
    pub(crate) disks: bool,
    pub(crate) name_node: bool,
    /// Nodes are taken out of service, and back; they change racks, and new ones come.
    pub(crate) operator: bool,
    /// A balancer moves replicas and units.
    pub(crate) balancer: bool,
    /// Machines are cloned, with the disks and the UUID of a DataNode.
    pub(crate) clones: bool,
    /// Longest time between two faults, in ms.
    pub(crate) pause_ms: u64,
}

/// Names of the kinds, in the order of the bits of `Options::without`.
pub const KINDS: [&str; 9] = [
    "network", "clients", "memory", "nodes", "disks", "namenode", "operator", "balancer", "clones",
];

impl Faults {
    /// Whether machines are cloned is up to dice of its own.
    pub(crate) fn new(rng: &mut Rng, dice: &mut Rng, options: &Options) -> Faults {
        // Each simulation has some kinds only, so that they show by themselves too.
        let mut bit = 0;
        let mut often = || {
            let is_wanted = options.without & 1 << bit == 0;
            bit += 1;
            !rng.one_in(4) && is_wanted
        };
        Faults {
            left: options.faults,
            network: often(),
            clients: often(),
            memory: often(),
            nodes: often(),
            disks: often(),
            name_node: often(),
            operator: often(),
            balancer: often(),
            clones: dice.one_in(3) && options.without & 1 << 8 == 0,
            pause_ms: rng.range(4000, 40_000) / if options.is_harsh { 5 } else { 1 },
        }
    }
}
