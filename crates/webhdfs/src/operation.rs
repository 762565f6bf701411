//! The operations, by the method of HTTP that they need.
//!
//! Source: Hadoop 3.5.0 `GetOpParam`, `PutOpParam`, `PostOpParam`, `DeleteOpParam`.

use cairn_net::http::{Method, Request};
use cairn_wire::exception::class;

use crate::failure::Failure;
use crate::params::Params;

const GET: [&str; 30] = [
    "OPEN",
    "GETFILESTATUS",
    "LISTSTATUS",
    "GETCONTENTSUMMARY",
    "GETQUOTAUSAGE",
    "GETFILECHECKSUM",
    "GETHOMEDIRECTORY",
    "GETDELEGATIONTOKEN",
    "GET_BLOCK_LOCATIONS",
    "GETFILEBLOCKLOCATIONS",
    "GETACLSTATUS",
    "GETXATTRS",
    "GETTRASHROOT",
    "LISTXATTRS",
    "GETALLSTORAGEPOLICY",
    "GETSTORAGEPOLICY",
    "GETECPOLICY",
    "CHECKACCESS",
    "LISTSTATUS_BATCH",
    "GETSERVERDEFAULTS",
    "GETSNAPSHOTDIFF",
    "GETSNAPSHOTDIFFLISTING",
    "GETSNAPSHOTTABLEDIRECTORYLIST",
    "GETLINKTARGET",
    "GETFILELINKSTATUS",
    "GETSTATUS",
    "GETECPOLICIES",
    "GETECCODECS",
    "GETTRASHROOTS",
    "GETSNAPSHOTLIST",
];

const PUT: [&str; 28] = [
    "CREATE",
    "MKDIRS",
    "CREATESYMLINK",
    "RENAME",
    "SETREPLICATION",
    "SETOWNER",
    "SETPERMISSION",
    "SETTIMES",
    "RENEWDELEGATIONTOKEN",
    "CANCELDELEGATIONTOKEN",
    "MODIFYACLENTRIES",
    "REMOVEACLENTRIES",
    "REMOVEDEFAULTACL",
    "REMOVEACL",
    "SATISFYSTORAGEPOLICY",
    "SETACL",
    "SETXATTR",
    "REMOVEXATTR",
    "ENABLEECPOLICY",
    "DISABLEECPOLICY",
    "SETECPOLICY",
    "ALLOWSNAPSHOT",
    "DISALLOWSNAPSHOT",
    "CREATESNAPSHOT",
    "RENAMESNAPSHOT",
    "SETSTORAGEPOLICY",
    "SETQUOTA",
    "SETQUOTABYSTORAGETYPE",
];

const POST: [&str; 5] = ["APPEND", "CONCAT", "TRUNCATE", "UNSETECPOLICY", "UNSETSTORAGEPOLICY"];

const DELETE: [&str; 2] = ["DELETE", "DELETESNAPSHOT"];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
}

impl Operation {
    /// The operation of a request. Fails where the method has none of that name.
    pub(crate) fn read(request: &Request, p: &Params<'_>) -> Result<Operation, Failure> {
        let (method, names) = match request.method {
            Method::PUT => ("PUT", &PUT[..]),
            Method::POST => ("POST", &POST[..]),
            Method::DELETE => ("DELETE", &DELETE[..]),
            _ => ("GET", &GET[..]),
        };
        let Some(text) = p.text("op").filter(|text| !text.eq_ignore_ascii_case("null")) else {
            return Err(Failure::new(class::UNSUPPORTED_OPERATION, "op=NULL is not supported"));
        };
        let found = names.iter().find(|name| name.eq_ignore_ascii_case(text));
        let wrong = || {
            let upper = text.to_uppercase();
            Failure::param("op", format!("{upper} is not a valid {method} operation."))
        };
        Ok(Operation { name: found.ok_or_else(wrong)? })
    }

    /// Whether it is about the bytes of a file, which DataNodes have.
    pub(crate) fn is_redirected(self) -> bool {
        ["OPEN", "GETFILECHECKSUM", "CREATE", "APPEND"].contains(&self.name)
    }

    /// Whether bytes come with it.
    pub(crate) fn has_body(self) -> bool {
        ["CREATE", "APPEND"].contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: Method, query: &str) -> Result<&'static str, String> {
        let request = Request::new(method, &format!("/?{query}")).unwrap();
        let op = Operation::read(&request, &Params::of(&request));
        op.map(|op| op.name).map_err(|failure| failure.to_string())
    }

    #[test]
    fn operations_belong_to_methods() {
        assert_eq!(read(Method::GET, "op=open"), Ok("OPEN"));
        assert_eq!(read(Method::POST, "OP=TRUNCATE"), Ok("TRUNCATE"));
        let told = read(Method::GET, "op=DELETE").unwrap_err();
        assert_eq!(
            told,
            "java.lang.IllegalArgumentException: Invalid value for webhdfs parameter \"op\": \
             java.lang.IllegalArgumentException: DELETE is not a valid GET operation."
        );
        let told = read(Method::PUT, "").unwrap_err();
        assert_eq!(told, "java.lang.UnsupportedOperationException: op=NULL is not supported");
    }
}
