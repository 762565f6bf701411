//! Machines as keys list them.
//!
//! Source: Hadoop 3.5.0 `MachineList`; commons-net `SubnetUtils`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

/// Machines by their addresses: all, or those that are listed, and those in ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineList {
    all: bool,
    addresses: BTreeSet<IpAddr>,
    ranges: Vec<(Ipv4Addr, u8)>,
}

impl MachineList {
    /// The machines of a list with commas between, by name, address or range of addresses (`10.0.0.0/8`), and what is
    /// wrong with ranges that were left out. Looks names up, so it may wait for the network; unknown ones are left out.
    ///
    /// Deviation: all addresses of a name count, Hadoop takes the first.
    pub(crate) fn read(list: &str) -> (MachineList, Vec<String>) {
        let entries: Vec<&str> = names(list).collect();
        let (mut machines, mut wrong) = (MachineList::default(), Vec::new());
        if entries == ["*"] {
            machines.all = true;
            return (machines, wrong);
        }
        for entry in entries {
            if entry.contains('/') {
                match range(entry) {
                    Ok(range) => machines.ranges.push(range),
                    Err(error) => wrong.push(error),
                }
                continue;
            }
            match (entry, 0).to_socket_addrs() {
                Ok(found) => {
                    machines.addresses.extend(found.map(|found| found.ip().to_canonical()))
                }
                Err(error) => tracing::warn!(entry, %error, "a machine of a list is unknown"),
            }
        }
        (machines, wrong)
    }

    /// Whether the machine with an address is among them.
    pub(crate) fn includes(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        let in_range = |(base, bits): &(Ipv4Addr, u8)| match from {
            IpAddr::V4(from) => {
                let differ = u64::from(from.to_bits() ^ base.to_bits());
                differ >> (32 - u32::from(*bits)) == 0
            }
            IpAddr::V6(_) => false,
        };
        self.all || self.addresses.contains(&from) || self.ranges.iter().any(in_range)
    }
}

/// What is between the commas of a list, without what is empty.
pub(crate) fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// A range of addresses: its beginning, and how many bits all of them share.
fn range(entry: &str) -> Result<(Ipv4Addr, u8), String> {
    let parsed = entry
        .split_once('/')
        .and_then(|(base, bits)| Some((base.parse::<Ipv4Addr>().ok()?, bits.parse::<u8>().ok()?)));
    match parsed {
        Some((base, bits)) if bits <= 32 => Ok((base, bits)),
        Some((_, bits)) => Err(format!("Value [{bits}] not in range [0,32]")),
        None => Err(format!("Could not parse [{entry}]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn includes(list: &str, from: &str) -> bool {
        MachineList::read(list).0.includes(from.parse().unwrap())
    }

    #[test]
    fn machines_are_named_by_address_range_and_name() {
        assert!(includes(" * ", "1.2.3.4"));
        assert!(!includes("", "1.2.3.4") && !includes(" , ", "1.2.3.4"));
        for inside in ["10.0.0.7", "192.168.0.0", "192.168.0.255", "127.0.0.1", "::ffff:127.0.0.1"]
        {
            assert!(includes("10.0.0.7, 192.168.0.0/24,localhost", inside), "{inside}");
        }
        for outside in ["10.0.0.8", "192.168.1.0", "1.2.3.4", "::2"] {
            assert!(!includes("10.0.0.7, 192.168.0.0/24,localhost", outside), "{outside}");
        }
        assert!(includes("0.0.0.0/0", "255.1.2.3"));
        assert!(includes("10.0.0.7/32", "10.0.0.7") && !includes("10.0.0.7/32", "10.0.0.6"));
        assert!(!includes("*,10.0.0.1", "10.0.0.2"), "a star counts alone");
    }

    #[test]
    fn wrong_ranges_are_told() {
        let (machines, wrong) = MachineList::read("10.0.0.0/99,10.0.0.0/8/1,10.1.0.0/16");
        assert_eq!(wrong, ["Value [99] not in range [0,32]", "Could not parse [10.0.0.0/8/1]"]);
        assert!(machines.includes("10.1.2.3".parse().unwrap()));
        assert!(!machines.includes("10.2.2.3".parse().unwrap()));
    }
}
