//! Where faults may be injected.

use crate::config::Configuration;
use anyhow::{Result, bail};
use cairn_net::reach::Reach;

/// Whether faults may be injected.
pub const KEY: &str = "cairn.debug.inject.enabled";

/// Refuses unless the configuration allows faults.
pub fn check_allowed(conf: &Configuration) -> Result<()> {
    match is_allowed(conf)? {
        true => Ok(()),
        false => bail!("faults are injected only where {KEY} is true"),
    }
}

fn is_allowed(conf: &Configuration) -> Result<bool> {
    let mut is_allowed = false;
    conf.boolean(KEY, &mut is_allowed)?;
    Ok(is_allowed)
}

/// With whom a server has connections, which can be cut where its configuration allows faults.
pub fn reach(conf: &Configuration) -> Result<Reach> {
    Ok(if is_allowed(conf)? { Reach::that_can_be_cut() } else { Reach::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_refused_unless_the_key_allows_them() {
        let mut conf = Configuration::default();
        assert!(check_allowed(&conf).is_err());
        conf.set(KEY, "false");
        assert!(check_allowed(&conf).is_err());
        conf.set(KEY, "true");
        assert!(check_allowed(&conf).is_ok());
    }

    #[test]
    fn no_network_can_be_cut_unless_the_key_allows_it() {
        let mut conf = Configuration::default();
        assert!(!reach(&conf).unwrap().can_be_cut());
        conf.set(KEY, "true");
        assert!(reach(&conf).unwrap().can_be_cut());
    }
}
