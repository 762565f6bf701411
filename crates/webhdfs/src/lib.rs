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

use cairn_client::ClientConfig;
use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Method, Request, Response, WEBHDFS, percent_encode};
use cairn_net::rpc_server::{LocalService, UserInfo};

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
    Gateway { names: Names, files: Arc<FileSystems> },
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
        let files = Arc::new(FileSystems::new(client));
        let names = Names::Elsewhere(Arc::clone(&files));
        WebHdfs { settings, role: Role::Gateway { names, files } }
    }

    async fn serve(&self, request: &Request, body: &mut Option<Body>) -> Result<Answer, Failure> {
        let p = Params::of(request);
        let op = Operation::read(request, &p)?;
        let asker = self.asker(request, &p)?;
        let path = match request.path.strip_prefix(WEBHDFS).unwrap_or_default() {
            "" => "/",
            path => path,
        };
        match &self.role {
            Role::NameNode { through: Some(through), .. }
                if op.is_redirected() && Through::is_wanted(&p) =>
            {
                let _turn = through.turn(op.name, request, &p)?;
                self.bytes(&through.files, op, path, &p, &asker, body).await
            }
            Role::NameNode { names, redirects, .. } if op.is_redirected() => {
                let wanted = Wanted { op: op.name, path, request, asker: &asker };
                redirects.answer(names, wanted).await
            }
            Role::Gateway { .. } if op.has_body() && !has_data(request, &p) => {
                to_itself(request, path)
            }
            Role::DataNode { files } | Role::Gateway { files, .. } if op.is_redirected() => {
                self.bytes(files, op, path, &p, &asker, body).await
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
        files: &FileSystems,
        op: Operation,
        path: &str,
        p: &Params<'_>,
        asker: &Asker,
        body: &mut Option<Body>,
    ) -> Result<Answer, Failure> {
        let fs = files.of(&asker.user)?;
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

    /// Who asks: `user.name`, or for it `doas`.
    ///
    /// Source: Hadoop 3.5.0 `JspHelper#getUGI`, `DataNodeUGIProvider#nonTokenUGI`.
    fn asker(&self, request: &Request, p: &Params<'_>) -> Result<Asker, Failure> {
        const USER: &str = "user.name";
        let user = match p.text(USER) {
            Some(user) => {
                self.settings.user_pattern.check(USER, user)?;
                user
            }
            None => self.settings.default_user.as_str(),
        };
        let user = match p.text("doas") {
            Some(effective) => {
                UserInfo { real: Some(user.to_string()), ..UserInfo::simple(effective) }
            }
            None => UserInfo::simple(user),
        };
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Ok(Asker { user: Arc::new(user), peer: request.peer.unwrap_or(nowhere) })
    }
}

/// Whether a gateway gets the body with this request.
fn has_data(request: &Request, p: &Params<'_>) -> bool {
    let header = |name| request.headers.get(name).and_then(|value| value.to_str().ok());
    let has_length = header("content-length").is_some_and(|len| len.trim() != "0");
    let says_so = p.raw("data").is_some_and(|data| data.eq_ignore_ascii_case("true"));
    says_so || has_length || header("transfer-encoding").is_some()
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
            let served = self.serve(&request, &mut body).await;
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
