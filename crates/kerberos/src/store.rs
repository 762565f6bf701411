//! Keys and tickets from elsewhere than the environment says.
//!
//! The safe library has no function for that. This file alone calls C.
//!
//! Source: MIT Kerberos 1.20 `gss_acquire_cred_from`, `gss_key_value_set_desc`.

#![allow(unsafe_code)]

use crate::place::Store;
use cairn_security::SaslError;
use libgssapi::credential::{Cred, CredUsage};
use libgssapi::error::{Error, MajorFlags};
use libgssapi_sys as sys;
use std::ffi::{CStr, CString};
use std::ptr;

/// The names of principals, and the mechanism: 1.2.840.113554.1.2.2.1 and 1.2.840.113554.1.2.2.
static PRINCIPAL: [u8; 10] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2, 1];
static KRB5: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
/// The mechanism of browsers and HTTP clients, which agrees on the other: 1.3.6.1.5.5.2.
static SPNEGO: [u8; 6] = [0x2b, 6, 1, 5, 5, 2];

/// What is acquired from there, of a principal or of the first that there is.
pub(super) fn acquire(
    principal: Option<&str>,
    usage: CredUsage,
    store: &Store,
) -> Result<Result<Cred, Error>, SaslError> {
    let named: [(&CStr, &Option<String>); 3] = [
        (c"keytab", &store.keytab),
        (c"client_keytab", &store.client_keytab),
        (c"ccache", &store.cache),
    ];
    let mut values = Vec::new();
    for (key, value) in named {
        if let Some(value) = value {
            let value = CString::new(value.as_str());
            values.push((key, value.map_err(|_| SaslError::new("A path with a zero byte"))?));
        }
    }
    let mut elements: Vec<sys::gss_key_value_element_desc> = values
        .iter()
        .map(|(key, value)| sys::gss_key_value_element_desc {
            key: key.as_ptr(),
            value: value.as_ptr(),
        })
        .collect();
    let set = sys::gss_key_value_set_desc {
        count: elements.len() as sys::OM_uint32,
        elements: elements.as_mut_ptr(),
    };
    let name = match principal.map(import).transpose() {
        Ok(name) => name,
        Err(error) => return Ok(Err(error)),
    };
    let usage = match usage {
        CredUsage::Accept => sys::GSS_C_ACCEPT,
        CredUsage::Initiate => sys::GSS_C_INITIATE,
        CredUsage::Both => sys::GSS_C_BOTH,
    };
    let mut mechanisms = [oid(&KRB5), oid(&SPNEGO)];
    let mut mechanisms = sys::gss_OID_set_desc {
        count: if usage == sys::GSS_C_ACCEPT { 2 } else { 1 },
        elements: mechanisms.as_mut_ptr(),
    };
    let mut cred: sys::gss_cred_id_t = ptr::null_mut();
    let mut minor = 0;
    // SAFETY: every pointer is null where the function takes that, or to something that outlives the call; it keeps none.
    let major = unsafe {
        sys::gss_acquire_cred_from(
            &raw mut minor,
            name.as_ref().map_or(ptr::null_mut(), |name| name.0),
            sys::_GSS_C_INDEFINITE,
            &raw mut mechanisms,
            usage as sys::gss_cred_usage_t,
            &raw const set,
            &raw mut cred,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if major != sys::GSS_S_COMPLETE {
        return Ok(Err(error(major, minor)));
    }
    // SAFETY: the function has made it, and nobody else has it.
    Ok(Ok(unsafe { Cred::from_c(cred) }))
}

/// A name of the library's.
struct Imported(sys::gss_name_t);

impl Drop for Imported {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the library has made it, and it is given back once.
        unsafe { sys::gss_release_name(&raw mut minor, &raw mut self.0) };
    }
}

fn import(principal: &str) -> Result<Imported, Error> {
    let mut text = sys::gss_buffer_desc {
        length: principal.len() as _,
        value: principal.as_ptr().cast_mut().cast(),
    };
    let mut kind = oid(&PRINCIPAL);
    let mut name = ptr::null_mut();
    let mut minor = 0;
    // SAFETY: what is pointed to outlives the call, which changes none of it and keeps no pointer.
    let major = unsafe {
        sys::gss_import_name(&raw mut minor, &raw mut text, &raw mut kind, &raw mut name)
    };
    match major == sys::GSS_S_COMPLETE {
        true => Ok(Imported(name)),
        false => Err(error(major, minor)),
    }
}

fn oid(bytes: &'static [u8]) -> sys::gss_OID_desc {
    sys::gss_OID_desc {
        length: bytes.len() as sys::OM_uint32,
        elements: bytes.as_ptr().cast_mut().cast(),
    }
}

fn error(major: u32, minor: u32) -> Error {
    Error { major: MajorFlags::from_bits_retain(major), minor }
}
