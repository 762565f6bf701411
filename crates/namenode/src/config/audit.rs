//! What is told of calls, and the keys that say so.

use std::path::PathBuf;

use cairn_keys::{BOOLEAN, keys, number};

use super::kinds::{OPTIONAL_FILE, SEPARATOR, WORDS};

keys! {
    /// What the audit log is to be.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AuditConfig, live LiveAudit {
        /// The file of the audit log; none for no log.
        file: Option<PathBuf>, "cairn.namenode.audit-log" = "" as OPTIONAL_FILE;
        /// Commands that the audit log does not tell of.
        silent_commands: Vec<String>, "dfs.namenode.audit.log.debug.cmdlist" = "" as WORDS;
        /// Whether the audit log has what clients say of their calls.
        caller_context: bool, "hadoop.caller.context.enabled" = "false" as BOOLEAN, live CallerContext;
        /// Characters of what a client says of a call, at most.
        caller_context_max: usize, "hadoop.caller.context.max.size" = "128" as number();
        /// Bytes of the signature of what a client says; longer ones are left out.
        signature_max: usize, "hadoop.caller.context.signature.max.size" = "40" as number();
        /// What is between the parts of what a client says.
        separator: String, "hadoop.caller.context.separator" = "," as SEPARATOR;
        /// Whether the client's port is added to what it says.
        tells_ports: bool, "dfs.namenode.audit.log.with.remote.port" = "false" as BOOLEAN;
        /// Whether the audit log says by which delegation token somebody came in.
        tells_tokens: bool, "dfs.namenode.audit.log.token.tracking.id" = "false" as BOOLEAN;
    }
    parts {}
    by_hand {}
    others {}
}
