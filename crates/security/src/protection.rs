//! How much a connection is protected.

use crate::SaslError;

/// What SASL calls the quality of protection. The more comes later.
///
/// Source: Hadoop 3.5.0 `SaslRpcServer.QualityOfProtection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// The peer has shown who it is; what follows can be read and changed.
    Authentication,
    /// What follows cannot be changed unnoticed.
    Integrity,
    /// Nor can it be read.
    Privacy,
}

impl Protection {
    /// All of them.
    pub const ALL: [Protection; 3] =
        [Protection::Authentication, Protection::Integrity, Protection::Privacy];

    /// Its name in SASL.
    pub fn qop(self) -> &'static str {
        match self {
            Protection::Authentication => "auth",
            Protection::Integrity => "auth-int",
            Protection::Privacy => "auth-conf",
        }
    }

    /// That of a name in SASL.
    pub fn of_qop(qop: &str) -> Option<Protection> {
        Protection::ALL.into_iter().find(|one| one.qop() == qop)
    }

    /// Its bit in the mechanism GSSAPI. Source: RFC 4752, section 3.3.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Protection::Authentication => 1,
            Protection::Integrity => 2,
            Protection::Privacy => 4,
        }
    }

    /// Those of a list as `hadoop.rpc.protection` has it, in its order; of nothing, authentication alone.
    ///
    /// Source: Hadoop 3.5.0 `SaslPropertiesResolver#setConf`.
    pub fn list(text: &str) -> Result<Vec<Protection>, SaslError> {
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let one = match name.to_ascii_lowercase().as_str() {
                "authentication" => Protection::Authentication,
                "integrity" => Protection::Integrity,
                "privacy" => Protection::Privacy,
                _ => {
                    let text = format!("{name} is not authentication, integrity or privacy");
                    return Err(SaslError(text));
                }
            };
            if !list.contains(&one) {
                list.push(one);
            }
        }
        if list.is_empty() {
            list.push(Protection::Authentication);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order() {
        use Protection::{Authentication, Integrity, Privacy};
        for (text, list) in [
            ("", vec![Authentication]),
            ("privacy", vec![Privacy]),
            (" Integrity , privacy,integrity", vec![Integrity, Privacy]),
        ] {
            assert_eq!(Protection::list(text).unwrap(), list, "{text:?}");
        }
        assert!(Protection::list("auth-conf").is_err());
        for one in Protection::ALL {
            assert_eq!(Protection::of_qop(one.qop()), Some(one));
        }
    }
}
