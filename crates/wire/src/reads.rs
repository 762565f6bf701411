//! Which calls of clients a NameNode that follows can answer: what clients ask there, and what those answer, is the same.
//!
//! Source: Hadoop 3.5.0 `ClientProtocol`, `ReadOnly`, `GlobalStateIdContext#isCoordinatedCall`, without those that need to know
//! of work under way or of events.

/// Calls of `ClientProtocol` that read names and nothing else. The two listings do if they want no locations.
pub const OF_NAMES: [&str; 24] = [
    "checkAccess",
    "getAclStatus",
    "getBatchedListing",
    "getContentSummary",
    "getEZForPath",
    "getEnclosingRoot",
    "getErasureCodingCodecs",
    "getErasureCodingPolicies",
    "getErasureCodingPolicy",
    "getFileInfo",
    "getFileLinkInfo",
    "getLinkTarget",
    "getListing",
    "getPreferredBlockSize",
    "getSnapshotDiffReport",
    "getSnapshotDiffReportListing",
    "getSnapshotListing",
    "getSnapshottableDirListing",
    "getStoragePolicies",
    "getStoragePolicy",
    "getXAttrs",
    "isFileClosed",
    "listEncryptionZones",
    "listXAttrs",
];

/// Those that say where blocks are.
pub const OF_PLACES: [&str; 2] = ["getBlockLocations", "getLocatedFileInfo"];
