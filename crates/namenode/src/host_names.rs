//! Whether an address has a name, asked of the system.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use socket2::SockAddr;

/// Longest name of a host that is told, with the zero behind it (`NI_MAXHOST`).
const MAX_NAME_LEN: usize = 1025;

/// Whether the system knows a name for `ip` that leads back to it, or `ip` is this machine's own. May wait for a name
/// server.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#isNameResolved`, and the JDK's `InetAddress#getHostName`.
pub fn is_resolved(ip: IpAddr) -> bool {
    // Nothing can be bound to an address that is another machine's.
    UdpSocket::bind((ip, 0)).is_ok() || name_of(ip).is_some_and(|name| leads_to(&name, ip))
}

fn leads_to(name: &str, ip: IpAddr) -> bool {
    let found = (name, 0).to_socket_addrs();
    found.is_ok_and(|mut found| found.any(|at| at.ip().to_canonical() == ip))
}

fn name_of(ip: IpAddr) -> Option<String> {
    let at = SockAddr::from(SocketAddr::new(ip, 0));
    let mut name = [0_u8; MAX_NAME_LEN];
    // SAFETY: address and buffer are there with their lengths while the call lasts, and no port is asked for.
    let failed = unsafe {
        libc::getnameinfo(
            at.as_ptr().cast(),
            at.len(),
            name.as_mut_ptr().cast(),
            MAX_NAME_LEN as libc::socklen_t,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if failed != 0 {
        return None;
    }
    Some(CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_need_no_name_and_names_are_looked_up_both_ways() {
        let own = IpAddr::from([127, 0, 0, 1]);
        assert!(is_resolved(own));
        let Some(name) = name_of(own) else { return };
        assert!(leads_to(&name, own), "{name}");
        assert!(!leads_to(&name, IpAddr::from([192, 0, 2, 1])));
    }
}
