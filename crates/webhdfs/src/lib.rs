//! WebHDFS: Hadoop's file system by HTTP, below `/webhdfs/v1`.
//!
//! A request becomes a call of `ClientProtocol`, and its answer JSON: what may be done, and what a name means, is decided
//! where RPCs are answered. One handler serves three roles ([`WebHdfs`]): a NameNode calls itself and sends who wants
//! bytes to DataNodes; a DataNode reads and writes bytes as a client; a gateway does both, for clients that reach nobody
//! else. Knows nothing of how servers keep what they keep.
//!
//! Source: Hadoop 3.5.0 `NamenodeWebHdfsMethods`, `WebHdfsHandler`, `HttpFSServer`.

mod attributes;
mod data;
mod failure;
mod files;
mod json;
mod names;
mod operation;
mod params;
mod questions;
mod redirect;
mod replies;
mod settings;
mod through;
mod trash;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use cairn_access::access::Access;
use cairn_access::groups::Groups;
use cairn_client::{ClientConfig, FileSystem};
use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Method, Request, Response, WEBHDFS, percent_encode};
use cairn_net::rpc_server::{Authentication, LocalService, UserInfo};
use cairn_security::NameRules;
use cairn_security::token::Token;
use cairn_trace::Span;
use cairn_wire::exception::class;

use crate::failure::Failure;
use crate::files::FileSystems;
use crate::names::{Asker, Names};
use crate::operation::Operation;
use crate::params::Params;
use crate::redirect::{Wanted, to_itself};
use crate::through::Through;

pub use redirect::{Choose, Redirects, Target};
pub use settings::{Csrf, Pattern, Settings};

/// The handler of one role.
pub struct WebHdfs {
    settings: Settings,
    role: Role,
}

/// What of it a server does.
enum Role {
    NameNode { names: Names, redirects: Redirects, through: Option<Box<Through>> },
    DataNode { files: Arc<FileSystems> },
    Gateway { names: Names, files: Arc<FileSystems>, guard: Option<Box<Guard>> },
}

/// What a gateway needs whose clients show tickets: it shows the NameNode its own, and acts for them.
pub struct Guard {
    /// Who it is for the NameNode, which must let it act for others.
    pub user: String,
    /// Which users principals stand for.
    pub rules: NameRules,
    /// Who of its clients may act for whom.
    pub access: Access,
    /// Which groups these are in.
    pub groups: Groups,
}

impl WebHdfs {
    /// A NameNode's, which makes its calls by `service`.
    pub fn of_namenode(
        settings: Settings,
        service: Arc<dyn LocalService>,
        redirects: Redirects,
    ) -> WebHdfs {
        let role = Role::NameNode { names: Names::Here(service), redirects, through: None };
        WebHdfs { settings, role }
    }

    /// The same, and its page may have bytes passed on by clients that are set up as `client`, with `through=namenode`.
    pub fn passing_on(mut self, client: ClientConfig) -> WebHdfs {
        if let Role::NameNode { through, .. } = &mut self.role {
            *through = Some(Box::new(Through::new(client)));
        }
        self
    }

    /// A DataNode's, whose clients are set up as `client`. The NameNode is that of `client`, whatever a request says.
    pub fn of_datanode(settings: Settings, client: ClientConfig) -> WebHdfs {
        WebHdfs { settings, role: Role::DataNode { files: Arc::new(FileSystems::new(client)) } }
    }

    /// A gateway's, which serves names and bytes.
    pub fn of_gateway(settings: Settings, client: ClientConfig) -> WebHdfs {
        WebHdfs::gateway(settings, FileSystems::new(client), None)
    }

    /// The same, for clients that show tickets.
    pub fn of_guarded_gateway(settings: Settings, client: ClientConfig, guard: Guard) -> WebHdfs {
        let files = FileSystems::new(client).acting(guard.user.clone(), guard.rules.clone());
        let settings = Settings { asks_proof: true, ..settings };
        WebHdfs::gateway(settings, files, Some(Box::new(guard)))
    }

    fn gateway(settings: Settings, files: FileSystems, guard: Option<Box<Guard>>) -> WebHdfs {
        let files = Arc::new(files);
        let names = Names::Elsewhere(Arc::clone(&files));
        WebHdfs { settings, role: Role::Gateway { names, files, guard } }
    }

    async fn serve(&self, request: &Request, body: &mut Option<Body>) -> Result<Answer, Failure> {
        let p = Params::of(request);
        let op = Operation::read(request, &p)?;
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let peer = request.peer.unwrap_or(nowhere);
        let (user, token) = match self.settings.asks_proof {
            true => self.shown(request, &p).await?,
            false => (self.named(&p)?, None),
        };
        if let Role::Gateway { guard: Some(guard), .. } = &self.role {
            guard.access.authorize(&user, None, peer.ip(), &guard.groups).await?;
        }
        let asker = Asker { user: Arc::new(user), token, peer };
        let path = match request.path.strip_prefix(WEBHDFS).unwrap_or_default() {
            "" => "/",
            path => path,
        };
        match &self.role {
            Role::NameNode { through: Some(through), .. }
                if op.is_redirected() && Through::is_wanted(&p) =>
            {
                let _turn = through.turn(op.name, request, &p)?;
                let fs = through.files.of(&asker.user, &asker.token)?;
                self.bytes(fs, op, path, &p, body).await
            }
            Role::NameNode { names, redirects, .. } if op.is_redirected() => {
                let by_token = self.settings.asks_proof;
                let wanted = Wanted { op: op.name, path, request, asker: &asker, by_token };
                redirects.answer(names, wanted).await
            }
            Role::Gateway { .. } if op.has_body() && !has_data(request, &p) => {
                to_itself(request, path)
            }
            Role::DataNode { files } | Role::Gateway { files, .. } if op.is_redirected() => {
                let fs = files.of(&asker.user, &asker.token)?;
                self.bytes(fs, op, path, &p, body).await
            }
            Role::NameNode { names, .. } | Role::Gateway { names, .. } => {
                let question =
                    questions::Question { web: &self.settings, names, op, path, p, asker };
                question.answer().await
            }
            Role::DataNode { .. } => {
                Err(Failure::argument(format!("Invalid operation {}", op.name)))
            }
        }
    }

    /// Reads or writes bytes.
    async fn bytes(
        &self,
        fs: FileSystem,
        op: Operation,
        path: &str,
        p: &Params<'_>,
        body: &mut Option<Body>,
    ) -> Result<Answer, Failure> {
        match op.name {
            "OPEN" => data::open(&fs, path, p).await,
            "GETFILECHECKSUM" => data::checksum(&fs, path).await,
            "CREATE" => {
                data::create(&fs, path, p, body).await?;
                let place =
                    format!("hdfs://{}{}", self.settings.authority, percent_encode(path, true));
                let headers = vec![("location", place)];
                Ok(Response { headers, ..Response::new(201, "", Vec::new()) }.into())
            }
            _ => {
                data::append(&fs, path, p, body).await?;
                Ok(Response::new(200, "", Vec::new()).into())
            }
        }
    }

    /// Who has shown to ask, by a ticket, for which it may say that it asks for another, or by a token.
    ///
    /// Source: Hadoop 3.5.0 `JspHelper#getUGI`, `#checkUsername`.
    async fn shown(
        &self,
        request: &Request,
        p: &Params<'_>,
    ) -> Result<(UserInfo, Option<Token>), Failure> {
        let user = match (&request.user, p.text("delegation")) {
            (_, Some(encoded)) => {
                let token = json::read_token(encoded).map(Token::from);
                let token = token.ok_or_else(|| Failure::argument("delegation is no token"))?;
                let user = match &self.role {
                    Role::NameNode { names, .. } | Role::Gateway { names, .. } => {
                        names.user_of_token(&token).await?
                    }
                    Role::DataNode { files } => files.user_of_token(&token)?,
                };
                return Ok((user, Some(token)));
            }
            // A DataNode has nothing to show for another.
            (Some(user), None) if !matches!(self.role, Role::DataNode { .. }) => user,
            _ => return Err(Failure::new(class::ACCESS_CONTROL, "Authentication required")),
        };
        if let Some(named) = p.text("user.name")
            && named != user.effective
        {
            let expected = &user.effective;
            let told = format!("Usernames not matched: name={named} != expected={expected}");
            return Err(Failure::io(told));
        }
        let user = UserInfo::clone(user);
        let user = match (p.text("doas"), &user.by) {
            (Some(other), Authentication::Kerberos { principal, .. })
                if other != user.effective =>
            {
                let (effective, principal) = (other.to_string(), principal.clone());
                let by = Authentication::Kerberos { effective, principal };
                UserInfo { effective: other.to_string(), real: Some(user.effective), by }
            }
            _ => user,
        };
        Ok((user, None))
    }

    /// Who asks by its own word: `user.name`, or for it `doas`.
    ///
    /// Source: Hadoop 3.5.0 `JspHelper#getUGI`, `DataNodeUGIProvider#nonTokenUGI`.
    fn named(&self, p: &Params<'_>) -> Result<UserInfo, Failure> {
        const USER: &str = "user.name";
        let user = match p.text(USER) {
            Some(user) => {
                self.settings.user_pattern.check(USER, user)?;
                user
            }
            None => self.settings.default_user.as_str(),
        };
        Ok(match p.text("doas") {
            Some(effective) => {
                UserInfo { real: Some(user.to_string()), ..UserInfo::simple(effective) }
            }
            None => UserInfo::simple(user),
        })
    }
}

/// Whether a gateway gets the body with this request.
fn has_data(request: &Request, p: &Params<'_>) -> bool {
    let header = |name| request.headers.get(name).and_then(|value| value.to_str().ok());
    let has_length = header("content-length").is_some_and(|len| len.trim() != "0");
    let says_so = p.raw("data").is_some_and(|data| data.eq_ignore_ascii_case("true"));
    says_so || has_length || header("transfer-encoding").is_some()
}

/// Where a client by HTTP says which span it asks for. Source: W3C Trace Context, level 1.
const TRACE_PARENT: &str = "traceparent";

/// What a request is called in a trace: `WebHDFS/OPEN`.
fn traced_as(request: &Request) -> String {
    let operation = request.query.iter().find(|(name, _)| name.eq_ignore_ascii_case("op"));
    let operation = operation.map_or("?", |(_, operation)| operation);
    format!("WebHDFS/{}", operation.to_ascii_uppercase())
}

impl Handler for WebHdfs {
    fn answer(&self, request: Request, body: Body) -> Boxed<'_, Answer> {
        Box::pin(async move {
            if let Some(csrf) = &self.settings.csrf
                && !csrf.lets_in(&request)
            {
                let told = "Missing Required Header for CSRF Vulnerability Protection";
                return Response::error(400, told).into();
            }
            if ![Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE]
                .contains(&request.method)
            {
                return Response::error(405, "GET, HEAD, PUT, POST and DELETE are served").into();
            }
            let mut body = Some(body);
            let said = request.headers.get(TRACE_PARENT).map(|said| said.as_bytes());
            let served = match Span::served(said, || traced_as(&request)) {
                None => self.serve(&request, &mut body).await,
                Some(mut span) => {
                    let served = Box::pin(span.contains(self.serve(&request, &mut body))).await;
                    served.as_ref().err().into_iter().for_each(|failure| span.failed(failure));
                    served
                }
            };
            // Who waits to be told to send a body is not told.
            if let Some(body) = body.filter(|_| !request.headers.contains_key("expect")) {
                body.discard().await;
            }
            match served {
                Ok(answer) => answer,
                Err(failure) => {
                    tracing::debug!(path = request.path, %failure, "refused by HTTP");
                    failure.response().into()
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_security::token::DelegationTokenId;
    use cairn_wire::RemoteException;
    use cairn_wire::proto::common::TokenProto;

    /// A NameNode that knows one token.
    struct Knows;

    impl LocalService for Knows {
        fn call_here(
            &self,
            _: cairn_net::rpc_server::Call,
        ) -> Boxed<'_, Result<Vec<u8>, RemoteException>> {
            Box::pin(async { Err(RemoteException::new(class::IO, "no calls")) })
        }

        fn user_of_token<'a>(
            &'a self,
            token: &'a Token,
        ) -> Boxed<'a, Result<UserInfo, RemoteException>> {
            let told = match token.password == b"right" {
                true => Ok(UserInfo { by: Authentication::Token(None), ..UserInfo::simple("ann") }),
                false => Err(RemoteException::new(class::INVALID_TOKEN, "Invalid token")),
            };
            Box::pin(async { told })
        }
    }

    fn token(password: &[u8]) -> String {
        let owner = "ann@R".to_string();
        let identifier = DelegationTokenId { owner, ..DelegationTokenId::default() }.encode();
        let (kind, service) = (String::new(), String::new());
        json::url_string(&TokenProto { identifier, password: password.to_vec(), kind, service })
    }

    /// `effective/real`, or why not.
    fn shown(web: &WebHdfs, query: &str, ticket: Option<&str>) -> Result<String, String> {
        let by = |name: &str| {
            let (effective, principal) = (format!("{name}@R"), format!("{name}@R"));
            let by = Authentication::Kerberos { effective, principal };
            Arc::new(UserInfo { by, ..UserInfo::simple(name) })
        };
        let request = Request::new(Method::GET, &format!("/?{query}")).unwrap();
        let request = Request { user: ticket.map(by), ..request };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let shown = runtime.block_on(web.shown(&request, &Params::of(&request)));
        let (user, _) = shown.map_err(|failure| failure.to_string())?;
        Ok(format!("{}/{}", user.effective, user.real.unwrap_or_default()))
    }

    #[test]
    fn who_asks_has_to_show_it() {
        let settings = Settings { asks_proof: true, ..Settings::new("nn:1") };
        let redirects = Redirects {
            choose: Arc::new(|_, _, _| Box::pin(async { None })),
            namenode: String::new(),
            by_address: false,
        };
        let namenode = WebHdfs::of_namenode(settings.clone(), Arc::new(Knows), redirects);
        let datanode = WebHdfs::of_datanode(settings, ClientConfig::default());
        let (right, wrong) = (token(b"right"), token(b"wrong"));
        for web in [&namenode, &datanode] {
            assert!(shown(web, "user.name=hdfs", None).unwrap_err().contains("Authentication"));
            assert!(shown(web, "delegation=%00", None).is_err());
        }
        assert_eq!(shown(&namenode, "", Some("ann")), Ok("ann/".into()));
        assert_eq!(shown(&namenode, "user.name=ann", Some("ann")), Ok("ann/".into()));
        assert_eq!(shown(&namenode, "doas=bob", Some("ann")), Ok("bob/ann".into()));
        let other = shown(&namenode, "user.name=hdfs", Some("ann")).unwrap_err();
        assert!(other.contains("Usernames not matched"), "{other}");
        let by_token =
            |token: &str| shown(&namenode, &format!("delegation={token}&doas=bob"), None);
        assert_eq!(by_token(&right), Ok("ann/".into()), "a token says all");
        assert!(by_token(&wrong).unwrap_err().contains("Invalid token"));
        // What a DataNode is shown, the NameNode judges.
        assert!(shown(&datanode, "", Some("ann")).is_err());
        let told = shown(&datanode, &format!("delegation={wrong}"), None);
        assert_eq!(told, Ok("ann@R/".into()));
    }
}
