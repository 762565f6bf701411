//! Roles of Ranger: who has which. A role is of users, of groups, and of all who have the roles that are in it.
//!
//! No I/O, no clock. Source: Apache Ranger 2.4 `RangerRolesUtil`, `RangerPluginContext#getRolesForUserAndGroups`.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::policy::{EVERYBODY, PolicyError, list};

/// The roles of a service's policies.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// The service that they are for.
    pub service: String,
    /// Their version.
    pub version: i64,
    names: Vec<String>,
    /// The roles that users and groups are named by, by their places in `names`.
    by_user: HashMap<String, Vec<usize>>,
    by_group: HashMap<String, Vec<usize>>,
    /// The roles that each is in.
    above: Vec<Vec<usize>>,
}

impl Roles {
    /// Reads what Ranger's admin server gives out.
    pub fn parse(text: &[u8]) -> Result<Roles, PolicyError> {
        let json: Value =
            serde_json::from_slice(text).map_err(|error| PolicyError::Json(error.to_string()))?;
        let service = json["serviceName"].as_str().ok_or(PolicyError::Shape("serviceName"))?;
        let version = json["roleVersion"].as_i64().ok_or(PolicyError::Shape("roleVersion"))?;
        let listed = list(&json, "rangerRoles", PolicyError::Shape("rangerRoles"))?;
        let name = |one: &Value| {
            one["name"].as_str().map(str::to_owned).ok_or(PolicyError::Shape("name of a role"))
        };
        let names = listed.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let places: HashMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut above = vec![Vec::new(); names.len()];
        let (mut by_user, mut by_group) = (HashMap::new(), HashMap::new());
        for (at, role) in listed.iter().enumerate() {
            for (kind, named) in [("users", &mut by_user), ("groups", &mut by_group)] {
                for member in list(role, kind, PolicyError::Shape("members of a role"))? {
                    named.entry(name(member)?).or_insert_with(Vec::new).push(at);
                }
            }
            for inner in list(role, "roles", PolicyError::Shape("members of a role"))? {
                if let Some(inner) = places.get(name(inner)?.as_str()) {
                    above[*inner].push(at);
                }
            }
        }
        Ok(Roles { service: service.to_owned(), version, names, by_user, by_group, above })
    }

    /// The roles of a user in these groups.
    pub fn of(&self, user: &str, groups: &[String]) -> Vec<String> {
        let groups = groups.iter().map(String::as_str).chain([EVERYBODY]);
        let by_groups = groups.filter_map(|group| self.by_group.get(group)).flatten();
        let mut left: Vec<usize> =
            self.by_user.get(user).into_iter().flatten().chain(by_groups).copied().collect();
        let mut found = BTreeSet::new();
        while let Some(at) = left.pop() {
            // Roles may be in each other.
            if found.insert(at) {
                left.extend(&self.above[at]);
            }
        }
        found.into_iter().map(|at| self.names[at].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(name: &str, users: &[&str], groups: &[&str], roles: &[&str]) -> Value {
        let named = |names: &[&str]| -> Vec<Value> {
            names.iter().map(|name| json!({"name": name, "isAdmin": false})).collect()
        };
        json!({"id": 1, "name": name, "users": named(users), "groups": named(groups), "roles": named(roles)})
    }

    fn roles(all: &[Value]) -> Result<Roles, PolicyError> {
        Roles::parse(
            json!({"serviceName": "s", "roleVersion": 4, "rangerRoles": all})
                .to_string()
                .as_bytes(),
        )
    }

    #[test]
    fn roles_are_of_users_of_groups_and_of_who_has_the_roles_in_them() {
        let all = roles(&[
            role("readers", &["ann"], &["staff"], &["writers", "gone"]),
            role("writers", &["bob"], &[], &["admins"]),
            role("admins", &["carol"], &[], &["readers"]),
            role("everybody", &[], &["public"], &[]),
            role("nobody", &[], &[], &["nobody"]),
        ])
        .unwrap();
        assert_eq!((all.service.as_str(), all.version), ("s", 4));
        for (user, groups, want) in [
            ("ann", &[][..], "readers admins writers everybody"),
            ("bob", &[], "readers writers admins everybody"),
            ("eve", &["staff"], "readers writers admins everybody"),
            ("staff", &["ann"], "everybody"),
        ] {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            let found: BTreeSet<String> = all.of(user, &groups).into_iter().collect();
            assert_eq!(found, want.split(' ').map(str::to_owned).collect(), "{user}");
        }
        // Who has the outer role has not the inner one.
        let nested = roles(&[role("a", &["ann"], &[], &["b"]), role("b", &["bob"], &[], &[])]);
        let nested = nested.unwrap();
        assert_eq!((nested.of("ann", &[]), nested.of("bob", &[]).len()), (vec!["a".into()], 2));
    }

    #[test]
    fn what_is_not_as_ranger_writes_it_is_refused() {
        assert!(Roles::parse(b"<html>").is_err());
        assert!(Roles::parse(br#"{"serviceName": "s", "rangerRoles": []}"#).is_err());
        for bad in [
            json!({"name": 1}),
            json!({"name": "a", "users": {}}),
            json!({"name": "a", "users": ["ann"]}),
        ] {
            assert!(roles(&[bad]).is_err());
        }
    }
}
