//! Members of a quorum of NameNodes.

/// What a member says of itself, and knows of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// What the configuration calls it.
    pub name: String,
    /// The number that was drawn for the quorum; 0 if it has not joined yet.
    pub quorum: u64,
    /// Its term.
    pub term: u64,
    /// Who leads, as far as it knows.
    pub leader: Option<String>,
    /// It leads itself, and serves.
    pub leads: bool,
    /// The last entry that it knows to be agreed on.
    pub last: u64,
    /// It would serve well if it led.
    pub is_ready: bool,
    /// Reads that it has answered since it was started while another one led.
    pub reads: u64,
    /// All that it knows of.
    pub members: Vec<QuorumMember>,
}

/// What a member knows of one, itself or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumMember {
    /// What the configuration calls it.
    pub name: String,
    /// Its own number; `None` if it has not joined.
    pub id: Option<u64>,
    /// `voter`, `learner`, `out` or `absent`.
    pub part: String,
    /// `host:port` of its RPC, if the configuration has it.
    pub rpc_address: Option<String>,
    /// Where the others speak to it, likewise.
    pub quorum_address: Option<String>,
    /// The last entry that it is known to have; leaders know it of all.
    pub last: Option<u64>,
    /// It was heard of lately.
    pub is_there: bool,
    /// It would serve well if it led.
    pub is_ready: bool,
}
