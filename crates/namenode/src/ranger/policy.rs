//! Policies of Ranger for HDFS: what they are, and what they say of one access. No I/O, no clock.
//!
//! A policy is for paths, or for tags that paths have; its items give or take accesses of users, groups and roles. Of the
//! policies that a path has, those that override go first; among equals one that denies goes before all that allow. An
//! exception takes an item back.
//!
//! Conditions and times of validity are not judged: what would be allowed by them is not, and what would be denied is, so
//! that nobody gets more than Ranger gives. So it is with roles and tags as long as they are not known.
//!
//! Source: Apache Ranger 2.4 `RangerDefaultPolicyEvaluator`, `RangerPathResourceMatcher`, `RangerPolicyEngineImpl`.

use serde_json::Value;

/// Policies, values of a policy, and items of one, that are taken at most.
const POLICIES_MAX: usize = 100_000;
const LIST_MAX: usize = 100_000;
/// Everybody is in this group.
pub(super) const EVERYBODY: &str = "public";
/// Whoever asks, and whoever owns what is asked for.
const USER: &str = "{USER}";
const OWNER: &str = "{OWNER}";

/// Why text has no policies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no JSON.
    #[error("the policies are no JSON: {0}")]
    Json(String),
    /// Something of it is not as Ranger writes it.
    #[error("the policies have no proper {0}")]
    Shape(&'static str),
}

/// What accesses of HDFS begin with in policies of tags.
const OF_HDFS: &str = "hdfs:";

/// Rights that policies speak of, as permission bits.
const READ: u8 = 4;
const WRITE: u8 = 2;
const EXECUTE: u8 = 1;

/// The policies of a service.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// The service that they are for.
    pub service: String,
    /// Their version.
    pub version: i64,
    /// Those that override first.
    policies: Vec<Policy>,
    names_roles: bool,
    names_tags: bool,
}

/// One policy.
#[derive(Clone, Debug)]
struct Policy {
    id: i64,
    overrides: bool,
    is_audited: bool,
    denies_all_else: bool,
    /// It has times of validity, or resources that are not known here: it allows nothing.
    is_partly_known: bool,
    resources: Vec<Resource>,
    allow: Vec<Item>,
    allow_exceptions: Vec<Item>,
    deny: Vec<Item>,
    deny_exceptions: Vec<Item>,
}

/// What a policy is for.
#[derive(Clone, Debug)]
enum Resource {
    Paths(Paths),
    /// Paths that have one of these tags.
    Tags(Vec<String>),
}

/// Paths of a policy, or of a tag.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    values: Vec<String>,
    is_recursive: bool,
    excludes: bool,
}

/// Who gets or loses what.
#[derive(Clone, Debug, Default)]
struct Item {
    users: Vec<String>,
    groups: Vec<String>,
    roles: Vec<String>,
    accesses: u8,
    has_conditions: bool,
}

/// A tag of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// Whether it is there at any time.
    pub is_certain: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Who asks, and which groups that is in.
    pub user: &'a str,
    /// Its groups.
    pub groups: &'a [String],
    /// Its roles; `None` where they are not known.
    pub roles: Option<&'a [String]>,
    /// What for.
    pub path: &'a str,
    /// Whose that is.
    pub owner: &'a str,
    /// The tags of it; `None` where they are not known.
    pub tags: Option<&'a [Tag]>,
}

/// What policies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// This one allows it.
    Allowed(Decider),
    /// This one denies it.
    Denied(Decider),
    /// Nothing.
    Nothing,
}

/// A policy that has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decider {
    /// Its number.
    pub id: i64,
    /// Whether that is to be told.
    pub is_audited: bool,
}

impl Policies {
    /// Reads what Ranger's admin server gives out. What is told with it names policies that count in part only.
    pub fn parse(text: &[u8]) -> Result<(Policies, Vec<String>), PolicyError> {
        let json: Value =
            serde_json::from_slice(text).map_err(|error| PolicyError::Json(error.to_string()))?;
        let service = json["serviceName"].as_str().ok_or(PolicyError::Shape("serviceName"))?;
        let version = json["policyVersion"].as_i64().ok_or(PolicyError::Shape("policyVersion"))?;
        let listed = list(&json, "policies", PolicyError::Shape("policies"))?;
        if listed.len() > POLICIES_MAX {
            return Err(PolicyError::Shape("number of policies"));
        }
        let tags = list(&json["tagPolicies"], "policies", PolicyError::Shape("tagPolicies"))?;
        let (mut policies, mut told) = (Vec::new(), Vec::new());
        let of_tags = tags.iter().map(|one| (one, true));
        for (one, is_of_tags) in of_tags.chain(listed.iter().map(|one| (one, false))) {
            let is_access = one["policyType"].as_i64().unwrap_or(0) == 0;
            if is_access && one["isEnabled"].as_bool().unwrap_or(true) {
                policies.push(Policy::parse(one, is_of_tags, &mut told)?);
            }
        }
        policies.sort_by_key(|policy| !policy.overrides);
        let names_roles = policies.iter().any(Policy::names_roles);
        let names_tags = policies.iter().any(Policy::names_tags);
        let service = service.to_owned();
        Ok((Policies { service, version, policies, names_roles, names_tags }, told))
    }

    /// Whether some are for roles, so that these must be known.
    pub fn names_roles(&self) -> bool {
        self.names_roles
    }

    /// Whether some are for tags.
    pub fn names_tags(&self) -> bool {
        self.names_tags
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.policies.len()
    }

    /// What is said of all of these rights, as permission bits: each must be allowed, and one that is denied is enough.
    pub fn judge(&self, request: Request<'_>, rights: u8) -> Said {
        let mut all = Said::Nothing;
        let mut is_open = false;
        for right in [READ, WRITE, EXECUTE].into_iter().filter(|right| rights & right != 0) {
            match self.judge_one(request, right) {
                Said::Denied(by) => return Said::Denied(by),
                Said::Nothing => is_open = true,
                allowed => all = allowed,
            }
        }
        if is_open { Said::Nothing } else { all }
    }

    fn judge_one(&self, request: Request<'_>, right: u8) -> Said {
        let mut allowed = None;
        for overrides in [true, false] {
            for policy in self.policies.iter().filter(|policy| policy.overrides == overrides) {
                let Some(is_certain) = policy.is_for(request) else { continue };
                match policy.says(request, right, is_certain) {
                    Some(false) => return Said::Denied(policy.decider()),
                    Some(true) => allowed = allowed.or(Some(policy.decider())),
                    None => {}
                }
            }
            if let Some(by) = allowed {
                return Said::Allowed(by);
            }
        }
        Said::Nothing
    }
}

impl Policy {
    fn parse(
        json: &Value,
        is_of_tags: bool,
        told: &mut Vec<String>,
    ) -> Result<Policy, PolicyError> {
        let id = json["id"].as_i64().ok_or(PolicyError::Shape("id of a policy"))?;
        let items = |name: &str| -> Result<Vec<Item>, PolicyError> {
            let items = list(json, name, PolicyError::Shape("items"))?.iter();
            items.map(|item| Item::parse(item, if is_of_tags { OF_HDFS } else { "" })).collect()
        };
        let is = |name: &str, default: bool| json[name].as_bool().unwrap_or(default);
        let mut resources = vec![&json["resources"]];
        resources.extend(list(json, "additionalResources", PolicyError::Shape("resources"))?);
        let mut is_partly_known =
            !list(json, "validitySchedules", PolicyError::Shape("validity"))?.is_empty();
        is_partly_known |= !list(json, "conditions", PolicyError::Shape("conditions"))?.is_empty();
        let kind = if is_of_tags { "tag" } else { "path" };
        let mut parsed = Vec::new();
        for one in resources {
            let named = one.as_object().ok_or(PolicyError::Shape("resources"))?;
            is_partly_known |= named.keys().any(|name| name != kind);
            parsed.push(match is_of_tags {
                true => Resource::Tags(texts(&one[kind], "values")?),
                false => Resource::Paths(Paths::parse(&one[kind])?),
            });
        }
        let policy = Policy {
            id,
            overrides: json["policyPriority"].as_i64().unwrap_or(0) > 0,
            is_audited: is("isAuditEnabled", true),
            denies_all_else: is("isDenyAllElse", false),
            is_partly_known,
            resources: parsed,
            allow: items("policyItems")?,
            allow_exceptions: items("allowExceptions")?,
            deny: items("denyPolicyItems")?,
            deny_exceptions: items("denyExceptions")?,
        };
        if policy.items().any(|item| item.has_conditions) || policy.is_partly_known {
            let name = json["name"].as_str().unwrap_or_default();
            told.push(format!(
                "policy {id} ({name}) has conditions or times, which are not judged"
            ));
        }
        Ok(policy)
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        let lists = [&self.allow, &self.allow_exceptions, &self.deny, &self.deny_exceptions];
        lists.into_iter().flatten()
    }

    fn names_roles(&self) -> bool {
        self.items().any(|item| !item.roles.is_empty())
    }

    fn names_tags(&self) -> bool {
        self.resources.iter().any(|one| matches!(one, Resource::Tags(_)))
    }

    fn decider(&self) -> Decider {
        Decider { id: self.id, is_audited: self.is_audited }
    }

    /// Whether it is about what is asked for, and whether that is certain.
    fn is_for(&self, request: Request<'_>) -> Option<bool> {
        self.resources.iter().filter_map(|one| one.is(request)).max()
    }

    /// Whether it gives that right, or takes it.
    fn says(&self, request: Request<'_>, right: u8, is_certain: bool) -> Option<bool> {
        // What is not known may be so where it denies, and is not so where it allows.
        let any = |items: &[Item], if_unknown| {
            items.iter().any(|item| item.is_for(request, right, if_unknown))
        };
        if any(&self.deny, true) && !any(&self.deny_exceptions, false) {
            return Some(false);
        }
        let may_allow = is_certain && !self.is_partly_known;
        let is_allowed = may_allow && any(&self.allow, false) && !any(&self.allow_exceptions, true);
        match (is_allowed, self.denies_all_else) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

impl Item {
    fn parse(json: &Value, prefix: &str) -> Result<Item, PolicyError> {
        let mut accesses = 0;
        for access in list(json, "accesses", PolicyError::Shape("accesses"))? {
            let kind = access["type"].as_str().unwrap_or_default();
            let right = match kind.strip_prefix(prefix) {
                Some("read") => READ,
                Some("write") => WRITE,
                Some("execute") => EXECUTE,
                // Of other services.
                _ => 0,
            };
            accesses |= if access["isAllowed"].as_bool().unwrap_or(true) { right } else { 0 };
        }
        Ok(Item {
            users: texts(json, "users")?,
            groups: texts(json, "groups")?,
            roles: texts(json, "roles")?,
            accesses,
            has_conditions: !list(json, "conditions", PolicyError::Shape("conditions"))?.is_empty(),
        })
    }

    /// Whether it is about this; `if_unknown` where that is not known.
    fn is_for(&self, request: Request<'_>, right: u8, if_unknown: bool) -> bool {
        let is_user = |user: &String| {
            user == request.user || user == USER || user == OWNER && request.owner == request.user
        };
        let is_group = |group: &String| group == EVERYBODY || request.groups.contains(group);
        let has_role = || match request.roles {
            Some(roles) => self.roles.iter().any(|role| roles.contains(role)),
            None => !self.roles.is_empty() && if_unknown,
        };
        let is_meant =
            self.users.iter().any(is_user) || self.groups.iter().any(is_group) || has_role();
        self.accesses & right != 0 && is_meant && (!self.has_conditions || if_unknown)
    }
}

impl Resource {
    /// Whether this is what is asked for, and whether that is certain.
    fn is(&self, request: Request<'_>) -> Option<bool> {
        match (self, request.tags) {
            (Resource::Paths(paths), _) => paths.have(request).then_some(true),
            (Resource::Tags(_), None) => Some(false),
            (Resource::Tags(names), Some(tags)) => {
                let named = tags.iter().filter(|tag| names.contains(&tag.name));
                named.map(|tag| tag.is_certain).max()
            }
        }
    }
}

impl Paths {
    pub(super) fn parse(json: &Value) -> Result<Paths, PolicyError> {
        let values = texts(json, "values")?;
        let is = |name: &str| json[name].as_bool().unwrap_or(false);
        // Without the slash at the end, which names of directories may have.
        let bare = |value: String| match value.trim_end_matches('/') {
            "" => "/".to_owned(),
            bare => bare.to_owned(),
        };
        let values = values.into_iter().map(bare).collect();
        Ok(Paths { values, is_recursive: is("isRecursive"), excludes: is("isExcludes") })
    }

    pub(super) fn have(&self, request: Request<'_>) -> bool {
        self.values.iter().any(|value| self.has(value, request)) != self.excludes
    }

    fn has(&self, value: &str, request: Request<'_>) -> bool {
        let names = [(USER, request.user), (OWNER, request.owner)];
        let mut named = names.iter().filter(|(place, _)| value.contains(place));
        // Users call themselves what they like, and no name is a pattern.
        if named.clone().any(|(_, name)| name.contains(['*', '?', '/', '{'])) {
            return false;
        }
        let filled = named.next().is_some().then(|| {
            names.iter().fold(value.to_owned(), |value, (place, name)| value.replace(place, name))
        });
        let value = filled.as_deref().unwrap_or(value);
        let path = request.path;
        let fixed = value.find(['*', '?']).map_or(value, |at| &value[..at]);
        let is_plain = fixed.len() == value.len();
        if !path.starts_with(fixed) {
            return false;
        }
        match (is_plain, self.is_recursive) {
            (true, false) => path == value,
            (true, true) => {
                value == "/" || path.len() == value.len() || path.as_bytes()[value.len()] == b'/'
            }
            (false, false) => fits(value, path),
            (false, true) => {
                let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
                ends.chain([path.len()]).any(|end| fits(value, &path[..end]))
            }
        }
    }
}

/// Whether a path is like a pattern, in which `*` stands for anything, slashes too, and `?` for one character.
///
/// Source: Apache Commons IO `FilenameUtils#wildcardMatch`.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), path.chars().collect());
    let (mut at, mut here) = (0, 0);
    // The last star, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while here < path.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(one) if *one == '?' || *one == path[here] => {
                at += 1;
                here += 1;
            }
            _ => match &mut star {
                Some((star_at, taken)) => {
                    *taken += 1;
                    (at, here) = (*star_at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

/// A list; an empty one where there is none.
pub(super) fn list<'a>(
    json: &'a Value,
    name: &str,
    wrong: PolicyError,
) -> Result<&'a [Value], PolicyError> {
    match json.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(all)) if all.len() <= LIST_MAX => Ok(all),
        Some(_) => Err(wrong),
    }
}

fn texts(json: &Value, name: &'static str) -> Result<Vec<String>, PolicyError> {
    let all = list(json, name, PolicyError::Shape(name))?.iter();
    let texts = all.map(|one| one.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    texts.ok_or(PolicyError::Shape(name))
}

#[cfg(test)]
mod tests;
