//! For whom a connection speaks, from what it has shown and what it says.

use cairn_security::server::{Authority, Identity};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    RpcResponseHeaderProtoRpcErrorCodeProto as Code, UserInformationProto,
};

use super::call::{Authentication, UserInfo};

/// The user of a connection. With a ticket it may say that it acts for another, which is still to be allowed; with a token
/// it is whom the token names.
///
/// Source: Hadoop 3.5.0 `Server.Connection#processConnectionContext`, `ProtoUtil#getUgi`.
/// Deviation: a context without a user is refused where nothing was shown; Hadoop runs its calls as the server's user.
/// Deviation: who calls itself by its short name is not taken for another.
pub(super) fn user(
    shown: Option<(&Identity, &dyn Authority)>,
    told: UserInformationProto,
) -> Result<UserInfo, RemoteException> {
    let named = |user: Option<String>| user.filter(|user| !user.is_empty());
    let told_user = named(told.effective_user);
    match shown {
        None => match told_user {
            Some(effective) => {
                let real = named(told.real_user);
                Ok(UserInfo { real, ..UserInfo::simple(effective) })
            }
            None => Err(denied("The connection context names no user")),
        },
        Some((Identity::Kerberos(principal), authority)) => {
            let own = user_of(authority, principal)?;
            let by = |effective: String| {
                let principal = principal.clone();
                Authentication::Kerberos { effective, principal }
            };
            match told_user {
                Some(told) if told != *principal => {
                    let effective = user_of(authority, &told)?;
                    let real = (effective != own).then_some(own);
                    Ok(UserInfo { effective, real, by: by(told) })
                }
                _ => Ok(UserInfo { effective: own, real: None, by: by(principal.clone()) }),
            }
        }
        // Whom it was issued to says nothing more than the token.
        Some((Identity::Block(id), _)) => {
            let pool = id.pool.as_deref().unwrap_or_default();
            let user = named(id.user.clone()).unwrap_or_else(|| format!("{pool}:{}", id.block));
            Ok(UserInfo { effective: user, real: None, by: Authentication::Block(id.clone()) })
        }
        Some((Identity::Token(id), authority)) => {
            let effective = match id.owner.as_str() {
                "" => return Err(denied("Can't retrieve username from tokenIdentifier.")),
                owner => user_of(authority, owner)?,
            };
            if let Some(told) = told_user
                && told != id.owner
                && user_of(authority, &told)? != effective
            {
                return Err(denied(&format!(
                    "Authenticated user ({effective}) doesn't match what the client claims to be ({told})"
                )));
            }
            let real = named(Some(id.real_user.clone())).filter(|real| *real != id.owner);
            let real = real.map(|real| user_of(authority, &real)).transpose()?;
            Ok(UserInfo { effective, real, by: Authentication::Token(Some(id.name())) })
        }
    }
}

fn user_of(authority: &dyn Authority, name: &str) -> Result<String, RemoteException> {
    authority.user_of(name).map_err(|error| denied(&error.0))
}

fn denied(message: &str) -> RemoteException {
    RemoteException::with_code(class::ACCESS_CONTROL, message, Code::FatalUnauthorized)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_security::gssapi::Context;
    use cairn_security::server::Offers;
    use cairn_security::token::DelegationTokenId;
    use cairn_security::{NameRules, SaslError};

    struct Known(NameRules);

    impl Authority for Known {
        fn offers(&self) -> &Offers {
            &Offers::Simple
        }

        fn token(&self, _: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException> {
            Err(denied("none"))
        }

        fn user_of(&self, principal: &str) -> Result<String, SaslError> {
            self.0.user_of(principal)
        }

        fn accept(&self) -> Result<Box<dyn Context>, SaslError> {
            Err(SaslError::new("none"))
        }
    }

    /// `effective/real`, or why not.
    fn of(shown: Option<&Identity>, effective: &str, real: &str) -> Result<String, String> {
        let known = Known(NameRules::parse("", "R", false).unwrap());
        let told = UserInformationProto {
            effective_user: Some(effective.to_owned()),
            real_user: Some(real.to_owned()),
        };
        let user = user(shown.map(|shown| (shown, &known as &dyn Authority)), told);
        let user = user.map_err(|error| error.message)?;
        Ok(format!("{}/{}", user.effective, user.real.unwrap_or_default()))
    }

    #[test]
    fn words_count_only_where_nothing_was_shown() {
        assert_eq!(of(None, "ann", "root"), Ok("ann/root".into()));
        assert_eq!(of(None, "", ""), Err("The connection context names no user".into()));
        let ann = Identity::Kerberos("ann@R".into());
        assert_eq!(of(Some(&ann), "", "root"), Ok("ann/".into()));
        assert_eq!(of(Some(&ann), "ann@R", ""), Ok("ann/".into()));
        assert_eq!(of(Some(&ann), "ann", ""), Ok("ann/".into()));
        // That is still to be allowed.
        assert_eq!(of(Some(&ann), "root", "root"), Ok("root/ann".into()));
        let stranger = Identity::Kerberos("ann@OTHER".into());
        assert_eq!(of(Some(&stranger), "", ""), Err("No rules applied to ann@OTHER".into()));
        let token = |owner: &str, real: &str| {
            let (owner, real_user) = (owner.to_owned(), real.to_owned());
            Identity::Token(DelegationTokenId { owner, real_user, ..DelegationTokenId::default() })
        };
        assert_eq!(of(Some(&token("ann@R", "")), "", ""), Ok("ann/".into()));
        assert_eq!(of(Some(&token("ann", "oozie@R")), "ann", ""), Ok("ann/oozie".into()));
        assert!(of(Some(&token("ann", "")), "root", "").unwrap_err().starts_with("Authenticated"));
        assert!(of(Some(&token("", "root")), "", "").is_err());
    }
}
