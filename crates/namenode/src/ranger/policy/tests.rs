use super::*;
use serde_json::json;

fn policies(all: Value) -> Policies {
    let text = json!({"serviceName": "hdfs", "policyVersion": 7, "policies": all}).to_string();
    Policies::parse(text.as_bytes()).unwrap().0
}

fn item(users: &[&str], groups: &[&str], accesses: &[&str]) -> Value {
    let accesses: Vec<Value> =
        accesses.iter().map(|one| json!({"type": one, "isAllowed": true})).collect();
    json!({"users": users, "groups": groups, "accesses": accesses})
}

fn path(values: &[&str], is_recursive: bool) -> Value {
    json!({"path": {"values": values, "isRecursive": is_recursive, "isExcludes": false}})
}

fn ask<'a>(user: &'a str, groups: &'a [String], path: &'a str) -> Request<'a> {
    Request { user, groups, path, owner: "hdfs", ..Request::default() }
}

/// `+` and the number of the policy that allows, `-` and that of the one that denies, or nothing.
fn said(policies: &Policies, user: &str, at: &str, rights: u8) -> String {
    told(policies.judge(ask(user, &["staff".to_owned()], at), rights))
}

fn told(said: Said) -> String {
    match said {
        Said::Allowed(by) => format!("+{}", by.id),
        Said::Denied(by) => format!("-{}", by.id),
        Said::Nothing => String::new(),
    }
}

#[test]
fn paths_are_those_of_ranger() {
    for (value, is_recursive, yes, no) in [
        ("/a", false, &["/a"][..], &["/a/b", "/ab", "/"][..]),
        ("/a/", false, &["/a"], &["/a/b"]),
        ("/a", true, &["/a", "/a/b", "/a/b/c"], &["/ab", "/", "/b/a"]),
        ("/", true, &["/", "/a", "/a/b"], &[]),
        ("/", false, &["/"], &["/a"]),
        ("/*", false, &["/", "/a", "/a/b"], &[]),
        ("/a/*", false, &["/a/b", "/a/b/c"], &["/a", "/b"]),
        ("/a*z", false, &["/az", "/a/b/z"], &["/az/b", "/b"]),
        ("/a*z", true, &["/az", "/az/b", "/axz/b/c"], &["/a", "/b"]),
        ("/a?c", false, &["/abc"], &["/ac", "/abbc"]),
        ("/home/{USER}", true, &["/home/ann", "/home/ann/x"], &["/home/anne", "/home/bob"]),
        ("/of/{OWNER}", false, &["/of/hdfs"], &["/of/ann"]),
    ] {
        let one = policies(json!([{"id": 1, "resources": path(&[value], is_recursive),
            "policyItems": [item(&["ann"], &[], &["read"])]}]));
        for at in yes {
            assert_eq!(said(&one, "ann", at, READ), "+1", "{value} {at}");
        }
        for at in no {
            assert_eq!(said(&one, "ann", at, READ), "", "{value} {at}");
        }
    }
    let home = policies(json!([{"id": 1, "resources": path(&["/home/{USER}"], true),
        "policyItems": [item(&["{USER}"], &[], &["read"])]}]));
    for (user, at) in [("*", "/home/ann"), ("a?n", "/home/ann"), ("x/../ann", "/home/x/../ann")] {
        assert_eq!(said(&home, user, at, READ), "", "{user} is no pattern");
    }
    let others = policies(
        json!([{"id": 1, "resources": {"path": {"values": ["/a"], "isExcludes": true, "isRecursive": true}},
        "policyItems": [item(&["ann"], &[], &["read"])]}]),
    );
    assert_eq!(
        (said(&others, "ann", "/b", READ), said(&others, "ann", "/a/b", READ)),
        ("+1".into(), "".into())
    );
}

#[test]
fn denials_go_before_and_exceptions_take_back() {
    let all = policies(json!([
        {"id": 1, "resources": path(&["/d"], true), "policyItems": [item(&[], &["public"], &["read", "execute"])]},
        {"id": 2, "resources": path(&["/d/secret"], true),
            "denyPolicyItems": [item(&[], &["staff"], &["read"])], "denyExceptions": [item(&["ann"], &[], &["read"])]},
        {"id": 3, "resources": path(&["/d/only"], true), "isDenyAllElse": true,
            "policyItems": [item(&["ann"], &[], &["read"])]},
        {"id": 4, "resources": path(&["/d/secret/open"], true), "policyPriority": 1,
            "policyItems": [item(&["bob"], &[], &["read"])]},
        {"id": 5, "resources": path(&["/d"], true), "isEnabled": false, "denyPolicyItems": [item(&[], &["public"], &["read"])]},
        {"id": 6, "resources": path(&["/e"], true), "policyItems": [item(&[], &["staff"], &["write"])],
            "allowExceptions": [item(&["bob"], &[], &["write"])]},
        {"id": 7, "resources": path(&["/own"], true), "policyItems": [item(&["{OWNER}"], &[], &["write"])]},
    ]));
    for (user, at, rights, want) in [
        ("bob", "/d/x", READ, "+1"),
        ("bob", "/d/x", READ | EXECUTE, "+1"),
        ("bob", "/d/x", READ | WRITE, ""),
        ("bob", "/d/secret/x", READ, "-2"),
        ("bob", "/d/secret/x", READ | WRITE, "-2"),
        ("ann", "/d/secret/x", READ, "+1"),
        ("bob", "/d/secret/x", EXECUTE, "+1"),
        ("bob", "/d/secret/open", READ, "+4"),
        ("ann", "/d/only/x", READ, "+1"),
        ("bob", "/d/only/x", READ, "-3"),
        ("ann", "/e/x", WRITE, "+6"),
        ("bob", "/e/x", WRITE, ""),
        ("hdfs", "/own/x", WRITE, "+7"),
        ("ann", "/own/x", WRITE, ""),
        ("ann", "/elsewhere", READ, ""),
    ] {
        assert_eq!(said(&all, user, at, rights), want, "{user} {at} {rights}");
    }
}

#[test]
fn roles_count_like_groups_where_they_are_known() {
    let role = json!({"roles": ["r", "s"], "accesses": [{"type": "read"}]});
    let everybody = item(&[], &["public"], &["read"]);
    for (what, with, without) in [
        (json!({"policyItems": [role]}), "+1", ""),
        (json!({"denyPolicyItems": [role]}), "-1", ""),
        (json!({"denyPolicyItems": [everybody], "denyExceptions": [role]}), "", "-1"),
        (json!({"policyItems": [everybody], "allowExceptions": [role]}), "", "+1"),
    ] {
        let mut policy = what.clone();
        policy["id"] = json!(1);
        policy["resources"] = path(&["/a"], true);
        let policies = policies(json!([policy]));
        assert!(policies.names_roles());
        for (roles, want) in
            [(&["s".to_owned()][..], with), (&["t".to_owned()], without), (&[], without)]
        {
            let request = Request { roles: Some(roles), ..ask("ann", &[], "/a") };
            assert_eq!(told(policies.judge(request, READ)), want, "{what} {roles:?}");
        }
    }
}

#[test]
fn policies_of_tags_are_for_paths_that_have_them() {
    let tagged = |priority: i64, items: &str, who: &str, access: &str| {
        json!({"id": 2, "policyPriority": priority, "resources": {"tag": {"values": ["PII", "X"]}},
            items: [item(&[who], &[], &[access])]})
    };
    let tag = |name: &str, is_certain| Tag { name: name.into(), is_certain };
    let (has, may_have) = (vec![tag("Y", true), tag("PII", true)], vec![tag("PII", false)]);
    let none = vec![tag("Y", true)];
    let allowed = [
        json!({"id": 1, "resources": path(&["/a"], true), "policyItems": [item(&["ann"], &[], &["read"])]}),
    ];
    let overridden = [
        json!({"id": 1, "policyPriority": 1, "resources": path(&["/a"], true), "policyItems": [item(&["ann"], &[], &["read"])]}),
    ];
    let denied = [
        json!({"id": 1, "resources": path(&["/a"], true), "denyPolicyItems": [item(&["ann"], &[], &["read"])]}),
    ];
    let (allow, deny) = ("policyItems", "denyPolicyItems");
    for (tags, paths, of_tags, want) in [
        (Some(&has), &[][..], tagged(0, allow, "ann", "hdfs:read"), "+2"),
        (Some(&has), &[], tagged(0, allow, "ann", "read"), ""),
        (Some(&has), &[], tagged(0, allow, "ann", "hive:read"), ""),
        (Some(&has), &[], tagged(0, allow, "bob", "hdfs:read"), ""),
        (Some(&none), &[], tagged(0, allow, "ann", "hdfs:read"), ""),
        (Some(&may_have), &[], tagged(0, allow, "ann", "hdfs:read"), ""),
        (None, &[], tagged(0, allow, "ann", "hdfs:read"), ""),
        (Some(&has), &allowed, tagged(0, deny, "ann", "hdfs:read"), "-2"),
        (Some(&may_have), &allowed, tagged(0, deny, "ann", "hdfs:read"), "-2"),
        (None, &allowed, tagged(0, deny, "ann", "hdfs:read"), "-2"),
        (Some(&none), &allowed, tagged(0, deny, "ann", "hdfs:read"), "+1"),
        (Some(&has), &overridden, tagged(0, deny, "ann", "hdfs:read"), "+1"),
        (Some(&has), &denied, tagged(0, allow, "ann", "hdfs:read"), "-1"),
        (Some(&has), &denied, tagged(1, allow, "ann", "hdfs:read"), "+2"),
    ] {
        let text = json!({"serviceName": "hdfs", "policyVersion": 7, "policies": paths,
            "tagPolicies": {"serviceName": "tags", "policies": [of_tags]}});
        let policies = Policies::parse(text.to_string().as_bytes()).unwrap().0;
        assert!(policies.names_tags());
        let tags = tags.map(Vec::as_slice);
        let request = Request { tags, ..ask("ann", &[], "/a/b") };
        assert_eq!(told(policies.judge(request, READ)), want, "{tags:?} {text}");
    }
}

#[test]
fn what_is_not_judged_gives_nobody_anything() {
    let with = |key: &str, more: Value| {
        let mut one = item(&["ann"], &[], &["read"]);
        one[key] = more;
        one
    };
    let conditions = || with("conditions", json!([{"type": "ip-range", "values": ["10.0.0.0/8"]}]));
    let role = json!({"roles": ["r"], "accesses": [{"type": "read"}]});
    for (name, policy, want) in [
        ("conditions", json!({"policyItems": [conditions()]}), ""),
        ("denied under conditions", json!({"denyPolicyItems": [conditions()]}), "-1"),
        ("a role", json!({"policyItems": [role]}), ""),
        ("a role that is denied", json!({"denyPolicyItems": [role]}), "-1"),
        (
            "an exception for a role",
            json!({"denyPolicyItems": [item(&["ann"], &[], &["read"])], "denyExceptions": [role]}),
            "-1",
        ),
        (
            "all but a role",
            json!({"policyItems": [item(&["ann"], &[], &["read"])], "allowExceptions": [role]}),
            "",
        ),
        (
            "for a time",
            json!({"policyItems": [item(&["ann"], &[], &["read"])], "validitySchedules": [{"startTime": "x"}]}),
            "",
        ),
        (
            "not allowed",
            json!({"policyItems": [{"users": ["ann"], "accesses": [{"type": "read", "isAllowed": false}]}]}),
            "",
        ),
    ] {
        let mut policy = policy;
        policy["id"] = json!(1);
        policy["resources"] = path(&["/a"], true);
        assert_eq!(said(&policies(json!([policy])), "ann", "/a", READ), want, "{name}");
    }
}

#[test]
fn what_is_not_as_ranger_writes_it_is_refused() {
    let good = json!({"serviceName": "s", "policyVersion": 1, "policies": [{"id": 1, "resources": path(&["/a"], false)}]});
    let parse = |json: &Value| Policies::parse(json.to_string().as_bytes());
    assert_eq!(parse(&good).unwrap().0.count(), 1);
    for (at, wrong) in [
        ("/serviceName", json!(1)),
        ("/policyVersion", json!("x")),
        ("/policies", json!({})),
        ("/policies/0/id", json!(null)),
        ("/policies/0/resources", json!([])),
        ("/policies/0/resources/path/values", json!([1])),
        ("/policies/0/resources/path/values", json!("x")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(at).unwrap() = wrong;
        assert!(parse(&bad).is_err(), "{at}");
    }
    assert!(matches!(Policies::parse(b"<html>"), Err(PolicyError::Json(_))));
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn some<'a>(&mut self, of: &[&'a str]) -> Vec<&'a str> {
        of.iter().copied().filter(|_| self.roll(2) == 0).collect()
    }
}

/// The same, said as simply as can be: patterns by trying all, decisions by walking over all that there is.
mod model {
    use super::*;

    fn fits(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=path.len()).any(|at| fits(rest, &path[at..])),
            ([b'?', rest @ ..], [_, more @ ..]) => fits(rest, more),
            ([one, rest @ ..], [other, more @ ..]) => one == other && fits(rest, more),
            _ => false,
        }
    }

    fn is_at(policy: &Value, path: &str) -> bool {
        let paths = &policy["resources"]["path"];
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let mut ways = vec![path.to_owned()];
        if paths["isRecursive"] == true {
            ways.extend((0..parts.len()).map(|count| format!("/{}", parts[..count].join("/"))));
        }
        let mut values = paths["values"].as_array().unwrap().iter();
        values.any(|value| {
            ways.iter().any(|way| fits(value.as_str().unwrap().as_bytes(), way.as_bytes()))
        })
    }

    fn named(policy: &Value, list: &str, user: &str, groups: &[String], right: &str) -> bool {
        let has = |of: &Value, name: &str| of.as_array().unwrap().iter().any(|one| one == name);
        policy[list].as_array().unwrap().iter().any(|item| {
            let who = has(&item["users"], user)
                || has(&item["groups"], "public")
                || groups.iter().any(|group| has(&item["groups"], group));
            let what = item["accesses"].as_array().unwrap().iter().any(|one| one["type"] == right);
            who && what
        })
    }

    /// Some(allowed), or nothing.
    pub(super) fn judge(
        all: &Value,
        user: &str,
        groups: &[String],
        path: &str,
        rights: &[&str],
    ) -> Option<bool> {
        let one = |right: &str| -> Option<bool> {
            for priority in [1, 0] {
                let here =
                    |policy: &&Value| policy["policyPriority"] == priority && is_at(policy, path);
                let here: Vec<&Value> = all.as_array().unwrap().iter().filter(here).collect();
                let is = |policy: &Value, list, but| {
                    named(policy, list, user, groups, right)
                        && !named(policy, but, user, groups, right)
                };
                let gives = |policy: &Value| is(policy, "policyItems", "allowExceptions");
                let denies = |policy: &Value| {
                    is(policy, "denyPolicyItems", "denyExceptions")
                        || policy["isDenyAllElse"] == true && !gives(policy)
                };
                if here.iter().any(|policy| denies(policy)) {
                    return Some(false);
                }
                if here.iter().any(|policy| gives(policy)) {
                    return Some(true);
                }
            }
            None
        };
        let each: Vec<Option<bool>> = rights.iter().map(|right| one(right)).collect();
        match () {
            () if each.contains(&Some(false)) => Some(false),
            () if each.contains(&None) => None,
            () => Some(true),
        }
    }
}

#[test]
fn random_policies_say_what_the_model_says() {
    const VALUES: [&str; 10] =
        ["/", "/a", "/a/b", "/a*", "/*", "/*/b", "/a/?", "/?/b/*c", "/a/b/c", "/b*b"];
    const PATHS: [&str; 10] =
        ["/", "/a", "/b", "/ab", "/a/b", "/a/b/c", "/b/b", "/b/b/c", "/a/c", "/bxb/c"];
    const RIGHTS: [(&str, u8); 3] = [("read", READ), ("write", WRITE), ("execute", EXECUTE)];
    let mut counts = [0; 3];
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let items = |dice: &mut Dice, most: usize| -> Vec<Value> {
            (0..dice.roll(most + 1))
                .map(|_| {
                    let (users, groups) =
                        (dice.some(&["ann", "bob"]), dice.some(&["staff", "dev", "public"]));
                    item(
                        &users,
                        if dice.roll(3) == 0 { &groups } else { &[] },
                        &dice.some(&["read", "write", "execute"]),
                    )
                })
                .collect()
        };
        let all: Vec<Value> = (0..1 + dice.roll(6))
            .map(|id| {
                let values = [VALUES[dice.roll(VALUES.len())], VALUES[dice.roll(VALUES.len())]];
                json!({"id": id, "resources": path(&values, dice.roll(2) == 0),
                    "policyPriority": usize::from(dice.roll(4) == 0), "isDenyAllElse": dice.roll(12) == 0,
                    "policyItems": items(&mut dice, 3), "allowExceptions": items(&mut dice, 1),
                    "denyPolicyItems": items(&mut dice, 1), "denyExceptions": items(&mut dice, 1)})
            })
            .collect();
        let all = Value::Array(all);
        let policies = policies(all.clone());
        for at in PATHS {
            for (user, groups) in [("ann", &["staff"][..]), ("bob", &["dev"]), ("eve", &[])] {
                let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
                let wanted: Vec<(&str, u8)> =
                    RIGHTS.into_iter().filter(|_| dice.roll(2) == 0).collect();
                if wanted.is_empty() {
                    continue;
                }
                let bits = wanted.iter().fold(0, |bits, (_, bit)| bits | bit);
                let rights: Vec<&str> = wanted.iter().map(|(right, _)| *right).collect();
                let said = match policies.judge(ask(user, &groups, at), bits) {
                    Said::Allowed(_) => Some(true),
                    Said::Denied(_) => Some(false),
                    Said::Nothing => None,
                };
                let expected = model::judge(&all, user, &groups, at, &rights);
                assert_eq!(said, expected, "seed {seed}: {user} {at} {rights:?} by {all:#}");
                counts[match said {
                    None => 0,
                    Some(true) => 1,
                    Some(false) => 2,
                }] += 1;
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 500), "each answer is tried: {counts:?}");
}
