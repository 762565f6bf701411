//! What is asked of the library.

use super::store;
use crate::place::Store;
use cairn_security::SaslError;
use cairn_security::gssapi::Context;
use libgssapi::context::{ClientCtx, CtxFlags, SecurityContext, ServerCtx};
use libgssapi::credential::{Cred, CredUsage};
use libgssapi::error::Error;
use libgssapi::name::Name;
use libgssapi::oid::{GSS_MECH_KRB5, GSS_NT_KRB5_PRINCIPAL, OidSet};

/// See [`super::accept`].
pub(super) fn accept(principal: &str, store: &Store) -> Result<Box<dyn Context>, SaslError> {
    let acquired = acquire(Some(principal), CredUsage::Accept, store)?;
    let told = |error| failed(&format!("The keytab has no key of {principal}"), error);
    Ok(Box::new(Accepting(ServerCtx::new(Some(acquired.map_err(told)?)))))
}

/// See [`super::own`].
pub(super) fn own(store: &Store) -> Result<String, SaslError> {
    peer(tickets(None, store)?.name())
}

fn tickets(own: Option<&str>, store: &Store) -> Result<Cred, SaslError> {
    let whose = own.unwrap_or("anybody");
    let told = |error| failed(&format!("There is no Kerberos ticket of {whose}"), error);
    acquire(own, CredUsage::Initiate, store)?.map_err(told)
}

/// See [`super::initiate`].
pub(super) fn initiate(
    own: Option<&str>,
    with: &str,
    store: &Store,
) -> Result<Box<dyn Context>, SaslError> {
    let tickets = tickets(own, store)?;
    let target = name(with).map_err(|error| failed("A wrong name", error))?;
    let flags = CtxFlags::GSS_C_MUTUAL_FLAG
        | CtxFlags::GSS_C_REPLAY_FLAG
        | CtxFlags::GSS_C_SEQUENCE_FLAG
        | CtxFlags::GSS_C_INTEG_FLAG
        | CtxFlags::GSS_C_CONF_FLAG;
    let context = ClientCtx::new(Some(tickets), target, flags, Some(GSS_MECH_KRB5));
    Ok(Box::new(Initiating(context)))
}

fn name(principal: &str) -> Result<Name, Error> {
    Name::new(principal.as_bytes(), Some(GSS_NT_KRB5_PRINCIPAL))
}

fn acquire(
    principal: Option<&str>,
    usage: CredUsage,
    store: &Store,
) -> Result<Result<Cred, Error>, SaslError> {
    if *store != Store::default() {
        return store::acquire(principal, usage, store);
    }
    let acquire = || {
        let name = principal.map(name).transpose()?;
        let mechanisms = OidSet::singleton(GSS_MECH_KRB5)?;
        Cred::acquire(name.as_ref(), None, usage, Some(&mechanisms))
    };
    Ok(acquire())
}

fn failed(what: &str, error: Error) -> SaslError {
    SaslError(format!("{what}: {error}"))
}

struct Accepting(ServerCtx);

struct Initiating(ClientCtx);

impl Context for Accepting {
    fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
        let answer = self.0.step(token, None);
        let answer = answer.map_err(|error| failed("GSS initiate failed", error))?;
        Ok(answer.map(|answer| answer.to_vec()))
    }

    fn is_established(&self) -> bool {
        self.0.is_complete()
    }

    fn peer(&self) -> Result<String, SaslError> {
        peer(self.0.source_name())
    }

    fn wrap(&mut self, confidential: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
        wrap(&mut self.0, confidential, message)
    }

    fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        unwrap(&mut self.0, sealed)
    }
}

impl Context for Initiating {
    fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
        let answer = self.0.step(Some(token).filter(|token| !token.is_empty()), None);
        let answer = answer.map_err(|error| failed("GSS initiate failed", error))?;
        Ok(answer.map(|answer| answer.to_vec()))
    }

    fn is_established(&self) -> bool {
        self.0.is_complete()
    }

    fn peer(&self) -> Result<String, SaslError> {
        peer(self.0.target_name())
    }

    fn wrap(&mut self, confidential: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
        wrap(&mut self.0, confidential, message)
    }

    fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        unwrap(&mut self.0, sealed)
    }
}

fn peer(name: Result<Name, Error>) -> Result<String, SaslError> {
    let text = name.and_then(|name| name.display_name());
    let text = text.map_err(|error| failed("The peer has no name", error))?;
    let text = std::str::from_utf8(&text);
    Ok(text.map_err(|_| SaslError::new("The peer's name is no text"))?.to_owned())
}

fn wrap(
    context: &mut impl SecurityContext,
    confidential: bool,
    message: &[u8],
) -> Result<Vec<u8>, SaslError> {
    let sealed = context.wrap(confidential, message);
    Ok(sealed.map_err(|error| failed("Problem performing GSS wrap", error))?.to_vec())
}

fn unwrap(context: &mut impl SecurityContext, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
    let message = context.unwrap(sealed);
    Ok(message.map_err(|error| failed("Problems unwrapping SASL buffer", error))?.to_vec())
}
