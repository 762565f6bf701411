//! Pages for people, as all servers have them: made on the server, kept up to date by one stream, and readable without
//! a script.
//!
//! A page is made of regions. The stream of a page (`live`) sends a region again when it has changed, in the same words
//! as the page had: nothing is drawn twice in two languages. Scripts and style are files of their own, which the binary
//! has in it, so that the policy that is sent with each page lets nothing else in. Knows nothing of roles.

pub mod happened;
pub mod html;
pub mod live;
pub mod text;

use std::fmt::Write as _;

use crate::http::{Request, Response};
use html::escape;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const ICON: &str = include_str!("page/icon.svg");

/// What a page may load, and from where: files of this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A part of a page that is sent again when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name on the page.
    pub id: &'static str,
    /// Markup.
    pub html: String,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its name, as text.
    pub title: String,
    /// The server's name, as text.
    pub server: String,
    /// Where the other pages are, with their names.
    pub places: &'static [(&'static str, &'static str)],
    /// Its own place among them.
    pub place: &'static str,
    /// What it says, from top to bottom.
    pub regions: Vec<Region>,
    /// Whether it changes while it is looked at.
    pub is_live: bool,
}

impl Page {
    /// The whole page, as the answer to a request for it.
    pub fn answer(&self, request: &Request) -> Response {
        let (title, server) = (escape(&self.title), escape(&self.server));
        let mut out = String::with_capacity(16 << 10);
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title} – {server}</title>\
             <link rel=\"icon\" type=\"image/svg+xml\" href=\"/page.svg\">\
             <link rel=\"stylesheet\" href=\"/page.css\">\
             <script src=\"/page.js\" defer></script></head><body"
        );
        if self.is_live {
            let mut own = escape(&request.path);
            for (index, (name, value)) in request.query.iter().enumerate() {
                let (name, value) = (html::encode(name), html::encode(value));
                let _ = write!(own, "{}{name}={value}", if index == 0 { "?" } else { "&amp;" });
            }
            let _ = write!(out, " data-live=\"{own}\"");
        }
        let _ = write!(
            out,
            "><a class=\"skip\" href=\"#main\">To the content</a>\
             <header><p class=\"server\">{server}</p><nav aria-label=\"Pages\"><ul>"
        );
        for (place, name) in self.places {
            let current = if *place == self.place { " aria-current=\"page\"" } else { "" };
            let _ = write!(out, "<li><a href=\"{place}\"{current}>{name}</a></li>");
        }
        let _ = write!(
            out,
            "</ul></nav><p id=\"connection\" role=\"status\"></p></header>\
             <main id=\"main\"><h1>{title}</h1>"
        );
        for Region { id, html } in &self.regions {
            let _ = write!(out, "<div id=\"{id}\">{html}</div>");
        }
        out.push_str("</main></body></html>");
        let headers = vec![
            ("content-security-policy", POLICY.to_string()),
            ("referrer-policy", "no-referrer".to_string()),
            ("x-frame-options", "DENY".to_string()),
        ];
        Response { headers, ..Response::ok(HTML, out) }
    }
}

/// The files that pages need.
pub fn file(path: &str) -> Option<Response> {
    let (kind, text) = match path {
        "/page.css" => ("text/css; charset=utf-8", CSS),
        "/page.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "/page.svg" | "/favicon.ico" => ("image/svg+xml", ICON),
        _ => return None,
    };
    Some(Response::ok(kind, text.to_string()))
}

/// Whether another site's page has a browser ask for this. Who is no browser says nothing of it.
pub fn is_cross_site(request: &Request) -> bool {
    let site = request.headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    site.is_some_and(|site| !["same-origin", "none"].contains(&site))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Method;

    fn page() -> Page {
        let region = Region { id: "state", html: "<p>all is well</p>".to_string() };
        Page {
            title: "<Overview>".to_string(),
            server: "a\"b".to_string(),
            places: &[("/", "Overview"), ("/nodes", "Nodes")],
            place: "/nodes",
            regions: vec![region],
            is_live: true,
        }
    }

    #[test]
    fn no_text_of_a_page_is_markup_and_its_policy_is_strict() {
        let request = Request::new(Method::GET, "/nodes?a=%22%3E%3Cb%3E&c=%C3%A4").unwrap();
        let answer = page().answer(&request);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.contains("<title>&lt;Overview&gt; – a&quot;b</title>"), "{text}");
        assert!(text.contains("data-live=\"/nodes?a=%22%3E%3Cb%3E&amp;c=%C3%A4\""), "{text}");
        assert!(text.contains("<a href=\"/nodes\" aria-current=\"page\">Nodes</a>"), "{text}");
        assert!(!text.contains("style=") && !text.contains("onclick"), "{text}");
        let (_, policy) = &answer.headers[0];
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn what_a_page_needs_comes_from_its_server_and_is_small() {
        let files = ["/page.css", "/page.js", "/page.svg"].map(|path| file(path).unwrap());
        assert!(files.iter().map(|file| file.body.len()).sum::<usize>() < 40_000);
        for file in files {
            let text = String::from_utf8(file.body).unwrap().replace("http://www.w3.org/", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
        }
        assert!(file("/page.html").is_none());
    }

    #[test]
    fn browsers_say_whose_page_asks() {
        let mut request = Request::new(Method::GET, "/").unwrap();
        assert!(!is_cross_site(&request));
        for (site, is_other) in [("same-origin", false), ("none", false), ("cross-site", true)] {
            request.headers.insert("sec-fetch-site", site.parse().unwrap());
            assert_eq!(is_cross_site(&request), is_other, "{site}");
        }
    }
}
