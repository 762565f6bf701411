//! Snapshot diffs that somebody gets page by page.
//!
//! Each would otherwise be computed anew for each page.

use cairn_namespace::snapshot::diff::DiffListing;
use cairn_process::held::held;
use std::sync::{Arc, Mutex};

/// Listings that are kept at a time.
const LISTINGS_MAX: usize = 4;
/// Entries in all of them; a longer listing is computed anew for each page.
const ENTRIES_MAX: usize = 1_000_000;

/// Who asks for the pages of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub user: String,
    pub path: String,
    pub from: String,
    pub to: String,
}

/// The listings of which pages were asked for last.
#[derive(Debug, Default)]
pub(crate) struct DiffListings {
    /// The newest at the end.
    kept: Mutex<Vec<(Question, Arc<DiffListing>)>>,
}

impl DiffListings {
    /// The listing of which a page was given out before.
    pub fn get(&self, question: &Question) -> Option<Arc<DiffListing>> {
        let kept = held(&self.kept);
        kept.iter().find(|(known, _)| known == question).map(|(_, listing)| Arc::clone(listing))
    }

    /// Keeps a listing that has more pages, in the place of an older one, and of others where there is no room.
    pub fn keep(&self, question: Question, listing: Arc<DiffListing>) {
        let mut kept = held(&self.kept);
        kept.retain(|(known, _)| *known != question);
        if listing.len() > ENTRIES_MAX {
            return;
        }
        kept.push((question, listing));
        while kept.len() > LISTINGS_MAX
            || kept.iter().map(|(_, listing)| listing.len()).sum::<usize>() > ENTRIES_MAX
        {
            kept.remove(0);
        }
    }

    /// Lets go of a listing whose last page was given out.
    pub fn forget(&self, question: &Question) {
        let mut kept = held(&self.kept);
        kept.retain(|(known, _)| known != question);
    }
}
