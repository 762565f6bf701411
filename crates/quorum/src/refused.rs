//! Why what was asked for is not done.

/// Why something is not proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotProposed {
    /// Another one leads, or nobody.
    #[error("this member does not lead")]
    NotLeader,
    /// Another change of the membership is under way.
    #[error("another change of the members is under way")]
    Busy,
}

/// Why the members are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChanged {
    /// It can't be proposed.
    #[error(transparent)]
    NotProposed(#[from] NotProposed),
    /// No member is called so.
    #[error("no member is called so")]
    Unknown,
    /// Nobody who is called so was shut out.
    #[error("no member that is called so was shut out")]
    NotOut,
    /// It is the last voter.
    #[error("it is the last one that votes")]
    LastVoter,
    /// It leads.
    #[error("it leads: have another member lead first")]
    Leads,
    /// Too few of those that are left were heard of lately.
    #[error(
        "{there} of the {left} that would be left to vote are there, and {left} agree on nothing without {}", left / 2 + 1
    )]
    MajorityLost {
        /// Those that would be left to vote.
        left: usize,
        /// Those of them that are there.
        there: usize,
    },
}
