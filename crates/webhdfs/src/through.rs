//! Bytes of files that a NameNode itself passes on, for its page: a page's script may ask its own server only, and
//! DataNodes are others. There are few such transfers at a time, short ones but for what is written, and other sites'
//! pages cannot ask for one.

use std::sync::Arc;

use cairn_client::ClientConfig;
use cairn_net::http::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;
use crate::files::FileSystems;
use crate::params::Params;

/// Transfers at a time.
const MOST: usize = 4;
/// Bytes that are read at most.
const READ_MAX: i64 = 1 << 20;
/// A header that a script of another site's page cannot send unless it is let.
const HEADER: &str = "x-xsrf-header";

/// What passes bytes on.
pub(crate) struct Through {
    pub(crate) files: FileSystems,
    turns: Arc<Semaphore>,
}

impl Through {
    /// By clients that are set up as `client`.
    pub(crate) fn new(client: ClientConfig) -> Through {
        Through { files: FileSystems::new(client), turns: Arc::new(Semaphore::new(MOST)) }
    }

    /// Whether that is asked for.
    pub(crate) fn is_wanted(p: &Params<'_>) -> bool {
        p.text("through").is_some_and(|server| server == "namenode")
    }

    /// Leave for one transfer, as long as what comes back is held.
    pub(crate) fn turn(
        &self,
        op: &'static str,
        request: &Request,
        p: &Params<'_>,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        if !request.headers.contains_key(HEADER) {
            return Err(Failure::argument(format!("through=namenode needs the header {HEADER}")));
        }
        let is_short = || {
            Ok::<_, Failure>(p.long("length", Some(0))?.is_some_and(|length| length <= READ_MAX))
        };
        if op == "OPEN" && !is_short()? {
            let told = format!("through=namenode reads no more than length={READ_MAX}");
            return Err(Failure::argument(told));
        }
        let turn = Arc::clone(&self.turns).try_acquire_owned();
        turn.map_err(|_| Failure::io(format!("{MOST} transfers go through the NameNode already")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::http::Method;

    fn ask(
        through: &Through,
        op: &'static str,
        query: &str,
        header: bool,
    ) -> Result<OwnedSemaphorePermit, String> {
        let mut request = Request::new(Method::GET, &format!("/?{query}")).unwrap();
        if header {
            request.headers.insert(HEADER, "page".parse().unwrap());
        }
        let p = Params::of(&request);
        assert!(Through::is_wanted(&p));
        through.turn(op, &request, &p).map_err(|failure| failure.to_string())
    }

    #[test]
    fn transfers_are_few_and_short_and_other_sites_have_none() {
        let through = Through::new(ClientConfig::default());
        let told = ask(&through, "CREATE", "through=namenode", false).unwrap_err();
        assert!(told.contains(HEADER), "{told}");
        for query in ["through=namenode", "through=namenode&length=1048577"] {
            let told = ask(&through, "OPEN", query, true).unwrap_err();
            assert!(told.contains("length=1048576"), "{told}");
        }
        let short = "through=namenode&length=1048576";
        let held: Vec<_> = (0..MOST).map(|_| ask(&through, "OPEN", short, true).unwrap()).collect();
        assert!(ask(&through, "CREATE", "through=namenode", true).is_err());
        drop(held);
        assert!(ask(&through, "CREATE", "through=namenode", true).is_ok());
    }
}
