//! The file browser: what is in a directory, and what can be done there.
//!
//! It asks by the calls that clients make, as the user whose name it was given, so that nobody sees by it what they
//! could not see otherwise, and the audit log tells. What changes something is asked of WebHDFS by the page's script.

use std::sync::Arc;

use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Method, Request, Response};
use cairn_net::page::html::{Table, Tone, badge, escape};
use cairn_net::page::text::{bytes, number, time};
use cairn_net::page::{Page, Region};
use cairn_wire::proto::hdfs as pb;

use super::super::seen::Pages;
use super::asked::{Asked, PATH, layout, mode};
use super::frame::{of, region};
use super::{actions, file};
use crate::fsck;
use crate::protocol::Protocols;

/// Entries on a page.
const SHOWN: usize = 200;

/// Answers requests for pages of files.
pub(crate) struct Files {
    pages: Arc<Pages>,
    service: Arc<Protocols>,
}

impl Files {
    /// Makes pages with `service`'s answers.
    pub(crate) fn new(pages: Arc<Pages>, service: Arc<Protocols>) -> Files {
        Files { pages, service }
    }

    async fn page(&self, request: &Request) -> Result<Page, Response> {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(Response::error(405, "only GET and HEAD are served"));
        }
        if request.path != PATH {
            return Err(Response::error(404, "not found"));
        }
        let user = fsck::user(request)?;
        let path = request.param("path").filter(|path| path.starts_with('/')).unwrap_or("/");
        let path = match path.trim_end_matches('/') {
            "" => "/".to_string(),
            path => path.to_string(),
        };
        let asked = Asked { path, user, request, service: &self.service };
        let mut regions = vec![region("where", crumbs(&asked))];
        match self.content(&asked).await {
            Ok(content) => regions.extend(content),
            Err(why) => {
                let why = format!("<p>{} {}</p>", badge(Tone::Bad, "refused"), escape(&why));
                regions.push(region("refused", why));
            }
        }
        let title = format!("Files in {}", asked.path);
        Ok(of(&self.pages, PATH, title, regions, false))
    }

    async fn content(&self, asked: &Asked<'_>) -> Result<Vec<Region>, String> {
        let ask = pb::GetFileInfoRequestProto { src: asked.path.clone() };
        let answer: pb::GetFileInfoResponseProto = asked.call("getFileInfo", &ask).await?;
        let Some(status) = answer.fs else { return Err(format!("{} is not there", asked.path)) };
        let node = &self.pages.node;
        let mut regions = match status.file_type() {
            pb::HdfsFileStatusProtoFileType::IsFile => file::regions(node, asked, &status).await?,
            _ => vec![region("entries", entries(asked).await?)],
        };
        if node.config.web.is_some() {
            regions.push(region("actions", actions::of(node, asked, &status)));
        }
        Ok(regions)
    }
}

impl Handler for Files {
    fn answer(&self, request: Request, _body: Body) -> Boxed<'_, Answer> {
        Box::pin(async move {
            match self.page(&request).await {
                Ok(page) => page.answer(&request).into(),
                Err(refused) => refused.into(),
            }
        })
    }
}

/// The path with each directory above it to go to, and who asks.
fn crumbs(asked: &Asked<'_>) -> String {
    let mut out = format!("<p class=\"crumbs\"><a href=\"{}\">/</a>", escape(&asked.to("/", &[])));
    let mut above = String::new();
    for name in asked.path.split('/').filter(|name| !name.is_empty()) {
        above.push('/');
        above.push_str(name);
        let to = escape(&asked.to(&above, &[]));
        let slash = if above.len() == name.len() + 1 { "" } else { " /" };
        out.push_str(&format!("{slash} <a href=\"{to}\">{}</a>", escape(name)));
    }
    let (path, user) = (escape(&asked.path), escape(&asked.user));
    out.push_str(&format!(
        "</p><form action=\"{PATH}\"><label>Path<input name=\"path\" value=\"{path}\" size=\"40\"></label>\
         <label>As user<input name=\"user.name\" value=\"{user}\" size=\"12\"></label>\
         <button>Go there</button></form>"
    ));
    out
}

/// What is in a directory, so many entries behind the one that `after` names.
async fn entries(asked: &Asked<'_>) -> Result<String, String> {
    let after = asked.request.param("after").unwrap_or_default();
    let ask = pb::GetListingRequestProto {
        src: asked.path.clone(),
        start_after: after.as_bytes().to_vec(),
        need_location: false,
        read_up_to: None,
    };
    let answer: pb::GetListingResponseProto = asked.call("getListing", &ask).await?;
    let listing = answer.dir_list.ok_or_else(|| format!("{} is not there", asked.path))?;
    let columns = ["Name", "#Size", "Layout", "Owner", "Group", "Mode", "Changed"];
    let mut table = Table::new("Entries", &columns);
    for status in listing.partial_listing.iter().take(SHOWN) {
        let name = String::from_utf8_lossy(&status.path);
        let path = format!("{}/{name}", asked.path.trim_end_matches('/'));
        let is_file = status.file_type() == pb::HdfsFileStatusProtoFileType::IsFile;
        let slash = if is_file { "" } else { "/" };
        table
            .row()
            .html(&format!(
                "<a href=\"{}\">{}{slash}</a>",
                escape(&asked.to(&path, &[])),
                escape(&name)
            ))
            .figure(&if is_file { bytes(status.length) } else { "–".to_string() })
            .text(&layout(status))
            .text(&status.owner)
            .text(&status.group)
            .text(&mode(status))
            .text(&time(status.modification_time));
    }
    let shown = listing.partial_listing.len().min(SHOWN);
    let rest =
        u64::from(listing.remaining_entries) + (listing.partial_listing.len() - shown) as u64;
    let last = listing.partial_listing.get(shown.wrapping_sub(1));
    let mut out = table.end("Nothing is in it.");
    if let Some(last) = last.filter(|_| rest > 0) {
        let name = String::from_utf8_lossy(&last.path);
        let to = escape(&asked.to(&asked.path, &[("after", &name)]));
        out.push_str(&format!("<p><a rel=\"next\" href=\"{to}\">{} more</a></p>", number(rest)));
    }
    Ok(out)
}
