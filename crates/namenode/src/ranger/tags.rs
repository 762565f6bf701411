//! Tags of Ranger: which paths have which.
//!
//! No I/O, no clock. Source: Apache Ranger 2.4 `ServiceTags`, `RangerTagEnricher`.

use serde_json::Value;
use std::collections::HashMap;

use super::policy::{Paths, PolicyError, Request, Tag, list};

/// The tags of a service's paths.
#[derive(Clone, Debug, Default)]
pub struct Tags {
    /// The service that they are for.
    pub service: String,
    /// Their version.
    pub version: i64,
    places: Vec<(Paths, Vec<Tag>)>,
}

impl Tags {
    /// Reads what Ranger's admin server gives out.
    pub fn parse(text: &[u8]) -> Result<Tags, PolicyError> {
        let json: Value =
            serde_json::from_slice(text).map_err(|error| PolicyError::Json(error.to_string()))?;
        let service = json["serviceName"].as_str().ok_or(PolicyError::Shape("serviceName"))?;
        let version = json["tagVersion"].as_i64().ok_or(PolicyError::Shape("tagVersion"))?;
        let mut known = HashMap::new();
        for (id, tag) in json["tags"].as_object().into_iter().flatten() {
            let name = tag["type"].as_str().ok_or(PolicyError::Shape("type of a tag"))?.to_owned();
            let times = list(tag, "validityPeriods", PolicyError::Shape("validity"))?;
            known.insert(id.as_str(), Tag { name, is_certain: times.is_empty() });
        }
        let mut places = Vec::new();
        for place in list(&json, "serviceResources", PolicyError::Shape("serviceResources"))? {
            let id = place["id"].as_i64().ok_or(PolicyError::Shape("id of a path"))?;
            let ids = list(&json["resourceToTagIds"], &id.to_string(), PolicyError::Shape("tags"))?;
            let tag = |id: &Value| known.get(id.to_string().as_str()).cloned();
            let tags = ids.iter().map(tag).collect::<Option<Vec<Tag>>>();
            let tags = tags.ok_or(PolicyError::Shape("tags of a path"))?;
            if let Some(paths) = place["resourceElements"].get("path") {
                places.push((Paths::parse(paths)?, tags));
            }
        }
        Ok(Tags { service: service.to_owned(), version, places })
    }

    /// The tags of what is asked for.
    pub fn of(&self, request: Request<'_>) -> Vec<Tag> {
        let here = self.places.iter().filter(|(paths, _)| paths.have(request));
        here.flat_map(|(_, tags)| tags).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tags(changed: (&str, Value)) -> Result<Tags, PolicyError> {
        let mut json = json!({"op": "add_or_update", "serviceName": "s", "tagVersion": 3,
            "tags": {"1": {"id": 1, "type": "PII"}, "2": {"id": 2, "type": "OLD", "validityPeriods": [{"startTime": "x"}]}},
            "serviceResources": [
                {"id": 7, "resourceElements": {"path": {"values": ["/a"], "isRecursive": true}}},
                {"id": 8, "resourceElements": {"path": {"values": ["/a/b"]}}},
                {"id": 9, "resourceElements": {"path": {"values": ["/c"]}}}],
            "resourceToTagIds": {"7": [1], "8": [2]}});
        json[changed.0] = changed.1;
        Tags::parse(json.to_string().as_bytes())
    }

    #[test]
    fn paths_have_the_tags_that_they_are_given() {
        let tags = tags(("op", json!("add_or_update"))).unwrap();
        assert_eq!((tags.service.as_str(), tags.version), ("s", 3));
        for (path, want) in
            [("/a", "PII"), ("/a/b", "PII OLD?"), ("/a/c", "PII"), ("/c", ""), ("/", "")]
        {
            let request = Request { path, ..Request::default() };
            let told = tags.of(request).into_iter();
            let told =
                told.map(|tag| format!("{}{}", tag.name, if tag.is_certain { "" } else { "?" }));
            assert_eq!(told.collect::<Vec<_>>().join(" "), want, "{path}");
        }
    }

    #[test]
    fn what_is_not_as_ranger_writes_it_is_refused() {
        assert!(Tags::parse(b"<html>").is_err());
        for bad in [
            ("tagVersion", json!("x")),
            ("tags", json!({"1": {}})),
            ("tags", json!({"1": {"type": "PII"}})),
            ("serviceResources", json!([{}])),
            ("resourceToTagIds", json!({"7": 1})),
        ] {
            assert!(tags(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
