//! Lets nobody in to a site who does not show a ticket of Kerberos (SPNEGO), or the cookie that it got for one.
//!
//! Below the folder of WebHDFS a delegation token will do as well, which WebHDFS asks for.
//!
//! Source: RFC 4559; Hadoop 3.5.0 `AuthenticationFilter`, `KerberosAuthenticationHandler`.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_security::auth_cookie::{self, AuthCookie};
use cairn_security::gssapi::Acceptor;
use cairn_security::{NameRules, SaslError};
use hyper::header;

use super::{Answer, Body, Handler, Request, Response, WEBHDFS};
use crate::Boxed;
use crate::rpc_server::{Authentication, UserInfo};
use cairn_process::disk_work::may_wait;

/// The scheme of the headers.
const NEGOTIATE: &str = "Negotiate";
/// Bytes of the longest token of a ticket that is looked at, in base64.
const TOKEN_MAX: usize = 48 << 10;
/// Says whether who watches a server is alive, and nothing else.
const HEALTH: &str = "/health";
/// Changes how a server logs: for its administrators.
const LEVEL: &str = "/logLevel";
/// What monitors ask for.
const NUMBERS: [&str; 3] = ["/prom", "/jmx", "/isActive"];

/// How clients by HTTP show who they are.
#[derive(Clone)]
pub struct HttpAuth {
    /// Makes a server's side of a security context, of the principal `HTTP/HOST`.
    pub acceptor: Acceptor,
    /// Which users principals stand for.
    pub rules: NameRules,
    /// What proves cookies.
    pub secret: Vec<u8>,
    /// How long a cookie is good.
    pub validity: Duration,
    /// The domain that browsers send it to; that of the server alone for `None`.
    pub domain: Option<String>,
    /// Whether everybody may see numbers, for monitors that have no tickets.
    pub opens_numbers: bool,
}

/// The secret does not show.
impl fmt::Debug for HttpAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAuth").field("validity", &self.validity).finish_non_exhaustive()
    }
}

/// Says whether a user may administer a server.
pub type Admins = Arc<dyn Fn(String) -> Boxed<'static, bool> + Send + Sync>;

/// A site that is not open to everybody.
pub struct Gate {
    auth: HttpAuth,
    site: Arc<dyn Handler>,
    /// Nobody may for `None`.
    admins: Option<Admins>,
}

/// What a request has shown.
enum Shown {
    /// This user, and what is told to it beside the answer.
    User(UserInfo, Vec<(&'static str, String)>),
    /// Nothing, and it need not.
    Nothing,
    /// Too little.
    Refused(Response),
}

impl Gate {
    /// Before that site, which nobody administers.
    pub fn new(auth: HttpAuth, site: Arc<dyn Handler>) -> Gate {
        Gate { auth, site, admins: None }
    }

    /// The same where these may administer it.
    pub fn with_admins(self, admins: Admins) -> Gate {
        Gate { admins: Some(admins), ..self }
    }

    /// Whether a user may have a page.
    ///
    /// Source: Hadoop 3.5.0 `HttpServer2#hasAdministratorAccess`, which `LogLevel.Servlet` asks. Deviation: Hadoop lets
    /// everybody in unless `hadoop.security.authorization` is set.
    async fn may_have(&self, path: &str, user: &UserInfo) -> bool {
        match &self.admins {
            _ if path != LEVEL => true,
            Some(admins) => admins(user.effective.clone()).await,
            None => false,
        }
    }

    fn look(&self, request: &Request, now_ms: u64) -> Shown {
        if let Some(cookie) = self.cookie(request, now_ms) {
            return Shown::User(user(cookie.user, cookie.principal), Vec::new());
        }
        if let Some(token) = ticket(request) {
            return match self.accept(&token, request.is_secure, now_ms) {
                Ok(shown) => shown,
                Err(error) => {
                    tracing::debug!(peer = ?request.peer, %error, "a ticket is not believed");
                    refused(403, &error.0)
                }
            };
        }
        match self.is_open(request) {
            true => Shown::Nothing,
            false => refused(401, "Authentication required"),
        }
    }

    fn cookie(&self, request: &Request, now_ms: u64) -> Option<AuthCookie> {
        let mut cookies = request.headers.get_all(header::COOKIE).iter();
        cookies.find_map(|value| {
            let value = auth_cookie::of_header(value.to_str().ok()?)?;
            AuthCookie::verify(value, &self.auth.secret, now_ms)
        })
    }

    fn accept(&self, token: &[u8], is_secure: bool, now_ms: u64) -> Result<Shown, SaslError> {
        // The library looks into files.
        may_wait(|| {
            let mut context = (self.auth.acceptor.0)()?;
            let answer = context.step(token)?;
            let answer = answer.map(|answer| format!("{NEGOTIATE} {}", STANDARD.encode(answer)));
            if !context.is_established() {
                let headers = answer.map(|answer| ("www-authenticate", answer));
                let response = Response::error(401, "Authentication required");
                let headers = headers.into_iter().collect();
                return Ok(Shown::Refused(Response { headers, ..response }));
            }
            let principal = context.peer()?;
            let name = self.auth.rules.user_of(&principal)?;
            let validity = u64::try_from(self.auth.validity.as_millis()).unwrap_or(u64::MAX);
            let ends_ms = now_ms.saturating_add(validity);
            let cookie = AuthCookie { user: name, principal, ends_ms };
            let mut headers: Vec<_> =
                answer.map(|answer| ("www-authenticate", answer)).into_iter().collect();
            headers.extend(cookie.sign(&self.auth.secret).map(|value| {
                let domain = self.auth.domain.as_ref();
                let domain = domain.map(|domain| format!("; Domain={domain}")).unwrap_or_default();
                let secure = if is_secure { "; Secure" } else { "" };
                let name = auth_cookie::NAME;
                let rest = format!("{domain}; Path=/{secure}; HttpOnly; SameSite=Lax");
                ("set-cookie", format!("{name}=\"{value}\"{rest}"))
            }));
            Ok(Shown::User(user(cookie.user, cookie.principal), headers))
        })
    }

    /// Whether a request may come in that shows nothing here.
    fn is_open(&self, request: &Request) -> bool {
        let path = request.path.as_str();
        let rest = path.strip_prefix(WEBHDFS);
        let is_web = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let has_token = request
            .query
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("delegation") && !value.is_empty());
        path == HEALTH || is_web && has_token || self.auth.opens_numbers && NUMBERS.contains(&path)
    }
}

fn user(name: String, principal: String) -> UserInfo {
    let by = Authentication::Kerberos { effective: principal.clone(), principal };
    UserInfo { effective: name, real: None, by }
}

/// The token of a ticket that a request has.
fn ticket(request: &Request) -> Option<Vec<u8>> {
    let value = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let is_it = scheme.eq_ignore_ascii_case(NEGOTIATE) && token.len() <= TOKEN_MAX;
    STANDARD.decode(token.trim()).ok().filter(|_| is_it)
}

/// A page that says why, and that a ticket is wanted where one was missing.
fn refused(code: u16, why: &str) -> Shown {
    let response = Response::error(code, why);
    let headers = match code {
        401 => vec![("www-authenticate", NEGOTIATE.to_owned())],
        _ => Vec::new(),
    };
    Shown::Refused(Response { headers, ..response })
}

impl Handler for Gate {
    fn answer(&self, request: Request, body: Body) -> Boxed<'_, Answer> {
        Box::pin(async move {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            match self.look(&request, now_ms) {
                Shown::Refused(response) => {
                    // Who waits to be told to send a body is not told.
                    if !request.headers.contains_key(header::EXPECT) {
                        body.discard().await;
                    }
                    response.into()
                }
                Shown::Nothing => self.site.answer(Request { user: None, ..request }, body).await,
                Shown::User(user, _) if !self.may_have(&request.path, &user).await => {
                    body.discard().await;
                    let user = user.effective;
                    let why = format!("User {user} is unauthorized to access this page.");
                    Response::error(403, &why).into()
                }
                Shown::User(user, headers) => {
                    let request = Request { user: Some(Arc::new(user)), ..request };
                    let mut answer = self.site.answer(request, body).await;
                    match &mut answer {
                        Answer::Whole(response) => response.headers.extend(headers),
                        Answer::Streamed(streamed) => streamed.headers.extend(headers),
                        Answer::Passed(passed) => passed.body.headers.extend(headers),
                    }
                    answer
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Method;
    use cairn_security::gssapi::Context;
    use hyper::header::{HeaderName, HeaderValue};

    const NOW: u64 = 1_000_000;

    /// Believes who shows a principal in plain words.
    struct Believer(Option<String>);

    impl Context for Believer {
        fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError> {
            let told = std::str::from_utf8(token).map_err(|_| SaslError::new("no text"))?;
            self.0 = (told != "more").then(|| told.to_owned());
            Ok(Some(b"answer".to_vec()))
        }

        fn is_established(&self) -> bool {
            self.0.is_some()
        }

        fn peer(&self) -> Result<String, SaslError> {
            self.0.clone().ok_or_else(|| SaslError::new("nobody"))
        }

        fn wrap(&mut self, _: bool, message: &[u8]) -> Result<Vec<u8>, SaslError> {
            Ok(message.to_vec())
        }

        fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
            Ok(sealed.to_vec())
        }
    }

    struct Nothing;

    impl Handler for Nothing {
        fn answer(&self, _: Request, _: Body) -> Boxed<'_, Answer> {
            Box::pin(async { Response::error(404, "nothing").into() })
        }
    }

    fn gate(opens_numbers: bool) -> Gate {
        let auth = HttpAuth {
            acceptor: Acceptor(Arc::new(|| Ok(Box::new(Believer(None))))),
            rules: NameRules::parse("", "R", false).unwrap(),
            secret: b"secret".to_vec(),
            validity: Duration::from_secs(10),
            domain: None,
            opens_numbers,
        };
        Gate::new(auth, Arc::new(Nothing))
    }

    fn request(target: &str, headers: &[(HeaderName, &str)]) -> Request {
        let mut request = Request::new(Method::GET, target).unwrap();
        for (name, value) in headers {
            request.headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        request
    }

    fn with_ticket(target: &str, of: &str) -> Request {
        let value = format!("{NEGOTIATE} {}", STANDARD.encode(of));
        request(target, &[(header::AUTHORIZATION, &value)])
    }

    /// The user, `-` for nobody, or the code of a refusal; and the headers.
    fn seen(gate: &Gate, request: &Request, now_ms: u64) -> (String, Vec<(&'static str, String)>) {
        match gate.look(request, now_ms) {
            Shown::User(user, headers) => (user.effective, headers),
            Shown::Nothing => ("-".to_owned(), Vec::new()),
            Shown::Refused(response) => (response.status.to_string(), response.headers),
        }
    }

    #[test]
    fn a_ticket_gives_a_cookie_that_will_do_until_it_ends() {
        let gate = gate(false);
        let (user, headers) = seen(&gate, &with_ticket("/", "ann@R"), NOW);
        assert_eq!(user, "ann");
        assert_eq!(headers[0], ("www-authenticate", "Negotiate YW5zd2Vy".to_owned()));
        let (name, cookie) = &headers[1];
        assert!(*name == "set-cookie" && cookie.contains("; HttpOnly"), "{cookie}");
        let value = cookie.split(';').next().unwrap();
        let again = request("/", &[(header::COOKIE, value)]);
        assert_eq!(seen(&gate, &again, NOW + 9_999).0, "ann");
        assert_eq!(seen(&gate, &again, NOW + 10_000).0, "401");
        let forged = value.replace("u=ann", "u=hdfs");
        assert_eq!(seen(&gate, &request("/", &[(header::COOKIE, &forged)]), NOW).0, "401");
    }

    #[test]
    fn who_shows_nothing_is_asked_and_who_shows_something_wrong_refused() {
        let gate = gate(false);
        let (code, headers) = seen(&gate, &request("/files?user.name=hdfs", &[]), NOW);
        assert_eq!(code, "401");
        assert_eq!(headers, [("www-authenticate", NEGOTIATE.to_owned())]);
        assert_eq!(seen(&gate, &with_ticket("/", "ann@OTHER"), NOW).0, "403");
        let (code, headers) = seen(&gate, &with_ticket("/", "more"), NOW);
        assert_eq!((code.as_str(), headers.len()), ("401", 1));
        let basic = request("/", &[(header::AUTHORIZATION, "Basic YTpi")]);
        assert_eq!(seen(&gate, &basic, NOW).0, "401");
    }

    #[tokio::test]
    async fn the_level_of_the_log_is_for_administrators() {
        let admins: Admins = Arc::new(|user| Box::pin(async move { user == "hdfs" }));
        let status = async |gate: &Gate, target: &str, user: &str| match gate
            .answer(with_ticket(target, user), Body::empty())
            .await
        {
            Answer::Whole(response) => response.status,
            _ => panic!("{target}: no whole answer"),
        };
        let (nobody, some) = (gate(false), gate(false).with_admins(admins));
        for target in ["/logLevel", "/logLevel?log=cairn&level=DEBUG"] {
            assert_eq!(status(&some, target, "hdfs@R").await, 404, "it comes to the site");
            assert_eq!(status(&some, target, "ann@R").await, 403);
            assert_eq!(status(&nobody, target, "hdfs@R").await, 403);
        }
        assert_eq!(status(&some, "/conf", "ann@R").await, 404);
    }

    #[test]
    fn what_is_open_is_open_to_everybody() {
        for (target, closed, open) in [
            ("/health", "-", "-"),
            ("/prom", "401", "-"),
            ("/jmx?qry=x", "401", "-"),
            ("/conf", "401", "401"),
            ("/fsck", "401", "401"),
            ("/webhdfs/v1/?op=LISTSTATUS", "401", "401"),
            ("/webhdfs/v1/?op=LISTSTATUS&delegation=", "401", "401"),
            ("/webhdfs/v1/a?op=OPEN&Delegation=x", "-", "-"),
            ("/webhdfs/v1x?delegation=x", "401", "401"),
            ("/fsck?delegation=x", "401", "401"),
        ] {
            let request = request(target, &[]);
            assert_eq!(seen(&gate(false), &request, NOW).0, closed, "{target}");
            assert_eq!(seen(&gate(true), &request, NOW).0, open, "{target}");
        }
    }
}
