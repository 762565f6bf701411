//! Who may do what on a server: which groups users are in, who may use which protocol from where, and who may act for
//! whom.
//!
//! Knows users as connections name them, and no rights to files.

pub mod access;
pub mod groups;
mod machine_list;
pub mod proxy_users;
pub mod service_policy;
