//! Parameters of a request's query, with Hadoop's names, ranges and complaints.
//!
//! Names count without regard to case. Source: Hadoop 3.5.0 `ParamFilter`, `web.resources.*Param`.

use std::fmt::Display;
use std::str::FromStr;

use cairn_net::http::Request;

use crate::failure::Failure;

/// What stands for no value.
const NULL: &str = "null";

/// The parameters of one request.
pub(crate) struct Params<'a> {
    request: &'a Request,
}

impl<'a> Params<'a> {
    pub(crate) fn of(request: &'a Request) -> Params<'a> {
        Params { request }
    }

    /// Whether the request came by TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.request.is_secure
    }

    /// The first value, whatever it is.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// All values.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let query = &self.request.query;
        query.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// All of them, with names in small letters.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (String, &'a str)> {
        self.request.query.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.as_str()))
    }

    /// A text; an empty one is none.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// A text that `op` cannot do without.
    pub(crate) fn required(&self, name: &str, op: &str) -> Result<&'a str, Failure> {
        self.text(name).ok_or_else(|| missing(name, op))
    }

    /// True, false, or `default`.
    pub(crate) fn boolean(&self, name: &str, default: bool) -> Result<bool, Failure> {
        match self.raw(name) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => {
                Err(Failure::param(name, format!("Failed to parse \"{text}\" to Boolean.")))
            }
        }
    }

    /// A Java `long` that is not below `min`.
    pub(crate) fn long(&self, name: &str, min: Option<i64>) -> Result<Option<i64>, Failure> {
        self.number(name, "long integer", 10, min, None, i64::from_str)
    }

    /// A Java `int` that is not below `min`.
    pub(crate) fn int(&self, name: &str, min: Option<i32>) -> Result<Option<i32>, Failure> {
        self.number(name, "integer", 10, min, None, i32::from_str)
    }

    /// `replication`.
    pub(crate) fn replication(&self) -> Result<Option<i16>, Failure> {
        self.number("replication", "short integer", 10, Some(1), None, i16::from_str)
    }

    /// Permission bits, octal.
    pub(crate) fn mode(&self, name: &str) -> Result<Option<u16>, Failure> {
        let parse = |text: &str| i16::from_str_radix(text, 8);
        let mode = self.number(name, "short integer", 8, Some(0), Some(0o1777), parse)?;
        Ok(mode.and_then(|mode| u16::try_from(mode).ok()))
    }

    fn number<N: Copy + PartialOrd + Display + Octal, E>(
        &self,
        name: &str,
        kind: &str,
        radix: u32,
        min: Option<N>,
        max: Option<N>,
        parse: impl Fn(&str) -> Result<N, E>,
    ) -> Result<Option<N>, Failure> {
        let Some(text) = self.raw(name).filter(|text| *text != NULL) else { return Ok(None) };
        let value = parse(text).map_err(|_| {
            Failure::param(name, format!("Failed to parse \"{text}\" as a radix-{radix} {kind}."))
        })?;
        let shown = |n: N| if radix == 8 { n.octal() } else { n.to_string() };
        let out_of_range = |sign, limit| {
            let range = format!("{name} = {} {sign} {}", shown(value), shown(limit));
            Err(Failure::param(name, format!("Invalid parameter range: {range}")))
        };
        match (min, max) {
            (Some(min), _) if value < min => out_of_range('<', min),
            (_, Some(max)) if value > max => out_of_range('>', max),
            _ => Ok(Some(value)),
        }
    }

    /// Words of an enumeration, separated by commas, each one of `words`, which is Java's `class`.
    pub(crate) fn words(
        &self,
        name: &str,
        class: &str,
        words: &[&'static str],
    ) -> Result<Vec<&'static str>, Failure> {
        let Some(text) = self.text(name) else { return Ok(Vec::new()) };
        text.split(',').map(|text| word(name, class, words, text.trim())).collect()
    }

    /// One word of an enumeration.
    pub(crate) fn word(
        &self,
        name: &str,
        class: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, Failure> {
        self.text(name).map(|text| word(name, class, words, text)).transpose()
    }

    /// A path that `op` cannot do without, from the root on.
    ///
    /// Source: Hadoop 3.5.0 `DestinationParam#validate`.
    pub(crate) fn destination(&self, op: &str) -> Result<String, Failure> {
        const NAME: &str = "destination";
        let text = self.required(NAME, op)?;
        if !text.starts_with('/') {
            let message =
                format!("Invalid parameter value: {NAME} = \"{text}\" is not an absolute path.");
            return Err(Failure::param(NAME, message));
        }
        Ok(normal(text))
    }
}

/// A path as Hadoop's `Path` has it: single slashes, none at the end.
fn normal(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '/' || !path.ends_with('/') {
            path.push(c);
        }
    }
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    path
}

/// What `op` lacks.
pub(crate) fn missing(name: &str, op: &str) -> Failure {
    Failure::argument(format!("Required param {name} for op: {op} is null or empty"))
}

fn word(
    name: &str,
    class: &str,
    words: &[&'static str],
    text: &str,
) -> Result<&'static str, Failure> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        let upper = text.to_uppercase();
        Failure::param(name, format!("No enum constant {class}.{upper}"))
    })
}

trait Octal {
    fn octal(&self) -> String;
}

macro_rules! octal {
    ($($number:ty),*) => { $(impl Octal for $number {
        fn octal(&self) -> String {
            format!("{self:o}")
        }
    })* };
}
octal!(i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::http::Method;

    const ARGUMENT: &str = "java.lang.IllegalArgumentException";

    fn request(query: &str) -> Request {
        Request::new(Method::GET, &format!("/?{query}")).unwrap()
    }

    fn told<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
        let text = result.unwrap_err().to_string();
        let (_, message) = text.split_once(": ").unwrap();
        message.to_string()
    }

    #[test]
    fn values_are_read_and_complained_about_as_by_hadoop() {
        let query = "Offset=7&length=null&permission=644&replication=0&overwrite=TRUE\
            &recursive=1&blocksize=1k&newlength=-1&flag=create,Replace&encoding=rot13&unmaskedpermission=2000";
        let request = request(query);
        let p = Params::of(&request);
        assert_eq!(p.long("offset", Some(0)), Ok(Some(7)));
        assert_eq!(p.long("length", Some(0)), Ok(None));
        assert_eq!(p.mode("permission"), Ok(Some(0o644)));
        assert_eq!(p.boolean("overwrite", false), Ok(true));
        assert_eq!(p.boolean("noredirect", false), Ok(false));
        assert_eq!(p.words("flag", "F", &["CREATE", "REPLACE"]), Ok(vec!["CREATE", "REPLACE"]));
        let invalid = |name: &str, cause: &str| {
            format!("Invalid value for webhdfs parameter \"{name}\": {ARGUMENT}: {cause}")
        };
        for (told, name, cause) in [
            (told(p.boolean("recursive", false)), "recursive", "Failed to parse \"1\" to Boolean."),
            (told(p.replication()), "replication", "Invalid parameter range: replication = 0 < 1"),
            (
                told(p.long("blocksize", Some(1))),
                "blocksize",
                "Failed to parse \"1k\" as a radix-10 long integer.",
            ),
            (
                told(p.long("newlength", Some(0))),
                "newlength",
                "Invalid parameter range: newlength = -1 < 0",
            ),
            (
                told(p.mode("unmaskedpermission")),
                "unmaskedpermission",
                "Invalid parameter range: unmaskedpermission = 2000 > 1777",
            ),
            (told(p.word("encoding", "a.B", &["HEX"])), "encoding", "No enum constant a.B.ROT13"),
        ] {
            assert_eq!(told, invalid(name, cause));
        }
    }

    #[test]
    fn destinations_are_paths_from_the_root() {
        for (text, path) in [("/a//b/", "/a/b"), ("/", "/"), ("//", "/"), ("/ä;+%25", "/ä;+%")] {
            let text = text.replace('+', "%2B");
            let request = request(&format!("destination={text}"));
            assert_eq!(Params::of(&request).destination("RENAME").unwrap(), path);
        }
        assert!(Params::of(&request("destination=a")).destination("RENAME").is_err());
        let none = Params::of(&request("destination=")).destination("RENAME").unwrap_err();
        assert!(
            none.to_string()
                .ends_with("Required param destination for op: RENAME is null or empty")
        );
    }
}
