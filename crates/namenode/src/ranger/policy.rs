//! Policies of Ranger for HDFS: what they are, and what they say of one access. No I/O, no clock.
//!
//! A policy is for paths; its items give or take accesses of users and groups. Of the policies that a path has, those that
//! override go first; among equals one that denies goes before all that allow. An exception takes an item back.
//!
//! Roles, conditions and times of validity are not judged: what would be allowed by them is not, and what would be denied
//! is, so that nobody gets more than Ranger gives.
//!
//! Source: Apache Ranger 2.4 `RangerDefaultPolicyEvaluator`, `RangerPathResourceMatcher`, `RangerPolicyEngineImpl`.

use serde_json::Value;

/// Policies, values of a policy, and items of one, that are taken at most.
const POLICIES_MAX: usize = 100_000;
const LIST_MAX: usize = 100_000;
/// Everybody is in this group.
const EVERYBODY: &str = "public";
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
    resources: Vec<Paths>,
    allow: Vec<Item>,
    allow_exceptions: Vec<Item>,
    deny: Vec<Item>,
    deny_exceptions: Vec<Item>,
}

/// Paths of a policy.
#[derive(Clone, Debug)]
struct Paths {
    values: Vec<String>,
    is_recursive: bool,
    excludes: bool,
}

/// Who gets or loses what.
#[derive(Clone, Debug, Default)]
struct Item {
    users: Vec<String>,
    groups: Vec<String>,
    accesses: u8,
    /// It is for roles as well, or under conditions.
    has_more: bool,
    has_conditions: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Who asks, and which groups that is in.
    pub user: &'a str,
    /// Its groups.
    pub groups: &'a [String],
    /// What for.
    pub path: &'a str,
    /// Whose that is.
    pub owner: &'a str,
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
        let (mut policies, mut told) = (Vec::new(), Vec::new());
        for one in listed {
            let is_access = one["policyType"].as_i64().unwrap_or(0) == 0;
            if is_access && one["isEnabled"].as_bool().unwrap_or(true) {
                policies.push(Policy::parse(one, &mut told)?);
            }
        }
        if json.get("tagPolicies").is_some_and(|tags| tags.get("policies").is_some()) {
            told.push("policies of tags do not count".to_owned());
        }
        policies.sort_by_key(|policy| !policy.overrides);
        Ok((Policies { service: service.to_owned(), version, policies }, told))
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
                if !policy.is_for(request) {
                    continue;
                }
                match policy.says(request, right) {
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
    fn parse(json: &Value, told: &mut Vec<String>) -> Result<Policy, PolicyError> {
        let id = json["id"].as_i64().ok_or(PolicyError::Shape("id of a policy"))?;
        let items = |name: &str| -> Result<Vec<Item>, PolicyError> {
            list(json, name, PolicyError::Shape("items"))?.iter().map(Item::parse).collect()
        };
        let is = |name: &str, default: bool| json[name].as_bool().unwrap_or(default);
        let mut resources = vec![&json["resources"]];
        resources.extend(list(json, "additionalResources", PolicyError::Shape("resources"))?);
        let mut is_partly_known =
            !list(json, "validitySchedules", PolicyError::Shape("validity"))?.is_empty();
        is_partly_known |= !list(json, "conditions", PolicyError::Shape("conditions"))?.is_empty();
        let mut paths = Vec::new();
        for one in resources {
            let named = one.as_object().ok_or(PolicyError::Shape("resources"))?;
            is_partly_known |= named.keys().any(|name| name != "path");
            paths.push(Paths::parse(&one["path"])?);
        }
        let policy = Policy {
            id,
            overrides: json["policyPriority"].as_i64().unwrap_or(0) > 0,
            is_audited: is("isAuditEnabled", true),
            denies_all_else: is("isDenyAllElse", false),
            is_partly_known,
            resources: paths,
            allow: items("policyItems")?,
            allow_exceptions: items("allowExceptions")?,
            deny: items("denyPolicyItems")?,
            deny_exceptions: items("denyExceptions")?,
        };
        let mut all = policy.allow.iter().chain(&policy.allow_exceptions);
        let has_more = |item: &Item| item.has_more || item.has_conditions;
        let counts_in_part =
            all.any(has_more) || policy.deny.iter().chain(&policy.deny_exceptions).any(has_more);
        if counts_in_part || policy.is_partly_known {
            let name = json["name"].as_str().unwrap_or_default();
            told.push(format!(
                "policy {id} ({name}) has roles, conditions or times, which are not judged"
            ));
        }
        Ok(policy)
    }

    fn decider(&self) -> Decider {
        Decider { id: self.id, is_audited: self.is_audited }
    }

    fn is_for(&self, request: Request<'_>) -> bool {
        self.resources.iter().any(|paths| paths.have(request))
    }

    /// Whether it gives that right, or takes it.
    fn says(&self, request: Request<'_>, right: u8) -> Option<bool> {
        // What is not known may be so where it denies, and is not so where it allows.
        let any = |items: &[Item], if_unknown| {
            items.iter().any(|item| item.is_for(request, right, if_unknown))
        };
        if any(&self.deny, true) && !any(&self.deny_exceptions, false) {
            return Some(false);
        }
        let is_allowed =
            !self.is_partly_known && any(&self.allow, false) && !any(&self.allow_exceptions, true);
        match (is_allowed, self.denies_all_else) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

impl Item {
    fn parse(json: &Value) -> Result<Item, PolicyError> {
        let mut accesses = 0;
        for access in list(json, "accesses", PolicyError::Shape("accesses"))? {
            let right = match access["type"].as_str().unwrap_or_default() {
                "read" => READ,
                "write" => WRITE,
                "execute" => EXECUTE,
                // Of other services.
                _ => 0,
            };
            accesses |= if access["isAllowed"].as_bool().unwrap_or(true) { right } else { 0 };
        }
        Ok(Item {
            users: texts(json, "users")?,
            groups: texts(json, "groups")?,
            accesses,
            has_more: !texts(json, "roles")?.is_empty(),
            has_conditions: !list(json, "conditions", PolicyError::Shape("conditions"))?.is_empty(),
        })
    }

    /// Whether it is about this; `if_unknown` where that is not known.
    fn is_for(&self, request: Request<'_>, right: u8, if_unknown: bool) -> bool {
        let is_user = |user: &String| {
            user == request.user || user == USER || user == OWNER && request.owner == request.user
        };
        let is_group = |group: &String| group == EVERYBODY || request.groups.contains(group);
        let is_named = self.users.iter().any(is_user) || self.groups.iter().any(is_group);
        let is_meant = is_named || self.has_more && if_unknown;
        self.accesses & right != 0 && is_meant && (!self.has_conditions || if_unknown)
    }
}

impl Paths {
    fn parse(json: &Value) -> Result<Paths, PolicyError> {
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

    fn have(&self, request: Request<'_>) -> bool {
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
fn list<'a>(json: &'a Value, name: &str, wrong: PolicyError) -> Result<&'a [Value], PolicyError> {
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
