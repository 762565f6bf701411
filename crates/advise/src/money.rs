//! What bytes on disk cost in a year.

/// Prices. What a currency is, nothing here needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Of a terabyte (10^12 bytes) of disk.
    pub disk_tb: f64,
    /// Of a node without its disks.
    pub node: f64,
    /// Terabytes of disk in a node.
    pub node_tb: f64,
    /// Watts of a node with its disks, cooling included.
    pub watts: f64,
    /// Of a kilowatt-hour.
    pub kwh: f64,
    /// Years in which disks and nodes are paid off.
    pub years: f64,
    /// The part of disks that may be full.
    pub full: f64,
}

impl Default for Prices {
    /// Round figures of 2026, to be replaced by one's own.
    fn default() -> Prices {
        Prices {
            disk_tb: 15.0,
            node: 6000.0,
            node_tb: 192.0,
            watts: 450.0,
            kwh: 0.2,
            years: 5.0,
            full: 0.75,
        }
    }
}

/// A word of `--money` that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// It is not `name=number`.
    #[error("{0} is not like disk=15")]
    Form(String),
    /// There is no such price.
    #[error("{0} is none of disk, node, node-size, watts, energy, years, full")]
    Name(String),
    /// A number that makes no sense there.
    #[error("{0} should be a number above 0")]
    Number(String),
}

impl Prices {
    /// Reads prices like `disk=15,node=6000,node-size=192,watts=450,energy=0.2,years=5,full=0.75`; those that are not named
    /// keep their defaults.
    pub fn parse(text: &str) -> Result<Prices, PriceError> {
        let mut prices = Prices::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, number) =
                word.split_once('=').ok_or_else(|| PriceError::Form(word.to_string()))?;
            let price = match name {
                "disk" => &mut prices.disk_tb,
                "node" => &mut prices.node,
                "node-size" => &mut prices.node_tb,
                "watts" => &mut prices.watts,
                "energy" => &mut prices.kwh,
                "years" => &mut prices.years,
                "full" => &mut prices.full,
                _ => return Err(PriceError::Name(name.to_string())),
            };
            let number = number.parse().ok().filter(|of: &f64| of.is_finite() && *of > 0.0);
            *price = number.ok_or_else(|| PriceError::Number(word.to_string()))?;
        }
        Ok(prices)
    }

    /// What so many bytes on disk cost in a year.
    pub fn a_year(&self, bytes: u64) -> f64 {
        let terabytes = bytes as f64 / 1e12 / self.full;
        let nodes = terabytes / self.node_tb;
        let bought = (terabytes * self.disk_tb + nodes * self.node) / self.years;
        bought + nodes * self.watts / 1000.0 * 8766.0 * self.kwh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_costs_what_it_costs() {
        let prices =
            Prices::parse("disk=10,node=5000,node-size=100,watts=500,energy=0.1,years=5,full=1")
                .unwrap();
        // (1000 + 5000) / 5, and 4383 kWh.
        assert!((prices.a_year(100_000_000_000_000) - (1200.0 + 438.3)).abs() < 1e-6);
        assert_eq!(Prices::parse(""), Ok(Prices::default()));
    }

    #[test]
    fn what_is_no_price_is_refused() {
        assert_eq!(Prices::parse("disk"), Err(PriceError::Form("disk".into())));
        assert_eq!(Prices::parse("disc=1"), Err(PriceError::Name("disc".into())));
        for word in ["disk=0", "disk=-1", "disk=NaN", "disk=x"] {
            assert_eq!(Prices::parse(word), Err(PriceError::Number(word.into())));
        }
    }
}
