//! Erasure coding policies: on directories, and their administration.

use crate::support::{Fs, MIB, create, root, said, user};
use cairn_namespace::FileRedundancy;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::ec::{
    AddEcPolicies, DisableEcPolicy, EnableEcPolicy, PolicySpec, RemoveEcPolicy, SetEcPolicy,
    UnsetEcPolicy,
};
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::query;
use cairn_namespace::{Outcome, Settings};
use cairn_stripe::{PolicyId, PolicyState};

fn set(path: &str, policy: &str) -> SetEcPolicy {
    SetEcPolicy { path: path.into(), policy: Some(policy.into()) }
}

fn policy_of(fs: &Fs, path: &str) -> Option<String> {
    query::get_ec_policy(&fs.store, &root(), path).unwrap().map(|policy| policy.name)
}

#[test]
fn the_default_policy_is_enabled_at_format_and_the_others_are_not() {
    let fs = Fs::new();
    let states: Vec<_> = query::policies(&fs.store)
        .unwrap()
        .into_iter()
        .map(|info| (info.policy.name, info.state == PolicyState::Enabled))
        .collect();
    let want = [
        ("RS-6-3-1024k", true),
        ("RS-3-2-1024k", false),
        ("RS-LEGACY-6-3-1024k", false),
        ("XOR-2-1-1024k", false),
        ("RS-10-4-1024k", false),
        ("RS-6-3-64k", false),
        ("RS-6-3-contiguous", false),
        ("RS-3-2-contiguous", false),
        ("RS-10-4-contiguous", false),
    ];
    assert_eq!(states, want.map(|(name, enabled)| (name.to_string(), enabled)));
}

#[test]
fn setting_a_policy_is_refused_with_hadoops_words() {
    let mut fs = Fs::new();
    fs.write("/f", &[]);
    let text = |name: &str| {
        format!(
            "Policy '{name}' does not match any enabled erasure coding policies: [RS-6-3-1024k]. An \
             erasure coding policy can be enabled by enableErasureCodingPolicy API."
        )
    };
    for name in ["RS-3-2-1024k", "nonsense"] {
        let want = ("HadoopIllegalArgumentException".to_string(), text(name));
        assert_eq!(said(&fs.err(set("/", name))), want);
    }
    assert_eq!(
        said(&fs.err(set("/f", "RS-6-3-1024k"))),
        ("IOException".into(), "Attempt to set an erasure coding policy for a file /f".into())
    );
    assert_eq!(
        said(&fs.err(set("/none", "RS-6-3-1024k"))),
        ("FileNotFoundException".into(), "Path not found: /none".into())
    );
    let error = fs.run(user("bob"), set("/", "RS-6-3-1024k")).unwrap_err();
    assert_eq!(said(&error).0, "AccessControlException");
}

#[test]
fn a_policy_is_inherited_by_new_files_and_kept_by_moved_ones() {
    let mut fs = Fs::new();
    fs.mkdirs("/ec/sub");
    fs.mkdirs("/plain");
    fs.ok(SetEcPolicy { path: "/ec".into(), policy: None });
    fs.set_policy("/ec/sub", "RS-3-2-1024k");
    fs.write("/ec/f", &[1]);
    fs.write("/ec/sub/g", &[1]);
    assert_eq!(policy_of(&fs, "/ec/f").as_deref(), Some("RS-6-3-1024k"));
    assert_eq!(policy_of(&fs, "/ec/sub/g").as_deref(), Some("RS-3-2-1024k"));
    let rename = |src: &str, dst: &str| RenameTo {
        src: src.into(),
        dst: dst.into(),
        overwrite: false,
        to_trash: false,
    };
    fs.ok(rename("/ec/f", "/plain/f"));
    assert_eq!(policy_of(&fs, "/plain/f").as_deref(), Some("RS-6-3-1024k"));
    assert_eq!(fs.status("/plain/f").unwrap().replication(), 1);
    fs.write("/plain/r", &[1]);
    fs.ok(rename("/plain/r", "/ec/r"));
    assert_eq!(policy_of(&fs, "/ec/r"), None);
    assert_eq!(fs.status("/ec/r").unwrap().replication(), 3);
    fs.ok(UnsetEcPolicy { path: "/ec/sub".into() });
    assert_eq!(policy_of(&fs, "/ec/sub").as_deref(), Some("RS-6-3-1024k"));
    assert_eq!(
        said(&fs.err(UnsetEcPolicy { path: "/ec/sub".into() })),
        (
            "NoECPolicySetException".into(),
            "No erasure coding policy explicitly set on /ec/sub".into()
        )
    );
    fs.ok(set("/ec/sub", "replication"));
    fs.write("/ec/sub/h", &[1]);
    assert_eq!((policy_of(&fs, "/ec/sub"), policy_of(&fs, "/ec/sub/h")), (None, None));
}

#[test]
fn a_file_can_be_created_with_a_policy_or_without() {
    let mut fs = Fs::new();
    fs.mkdirs("/ec");
    fs.ok(SetEcPolicy { path: "/ec".into(), policy: None });
    fs.ok(Create { should_replicate: true, ..create("/ec/r") });
    let redundancy =
        |fs: &Fs, path: &str| fs.status(path).unwrap().inode.file().unwrap().redundancy;
    assert_eq!(redundancy(&fs, "/ec/r"), FileRedundancy::Replicated(3));
    fs.ok(Create { ec_policy: Some("RS-6-3-1024k".into()), ..create("/e") });
    assert_eq!(redundancy(&fs, "/e"), FileRedundancy::Striped(PolicyId(1)));
    let both =
        Create { should_replicate: true, ec_policy: Some("RS-6-3-1024k".into()), ..create("/x") };
    assert!(said(&fs.err(both)).1.contains("exclusive parameters"));
    let small = Create { block_size: MIB / 2, ..create("/ec/x") };
    assert_eq!(
        said(&fs.err(small)).1,
        "Specified block size (524288) is less than the cell size (1048576) of the erasure coding \
         policy (ErasureCodingPolicy=[Name=RS-6-3-1024k, Schema=[ECSchema=[Codec=rs, \
         numDataUnits=6, numParityUnits=3]], CellSize=1048576, Id=1])."
    );
    // What replaces a file must be what that may be, and what it becomes.
    let mut refused = |path: &str, block_size: u64, replication: u16| {
        let over = Create { overwrite: true, block_size, replication, ..create(path) };
        said(&fs.err(over)).1.split(' ').take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(refused("/ec/r", MIB / 2, 3), "Specified block");
    assert_eq!(refused("/ec/r", MIB / 2, 0), "Requested replication");
    assert_eq!(refused("/ec/r", MIB, 0), "Requested replication");
    assert_eq!(refused("/e", MIB / 2, 0), "Specified block");
    assert_eq!(refused("/e", MIB, 0), "Requested replication");
    // What replaces a striped file takes after the directory, not after the file.
    fs.ok(Create { overwrite: true, holder: "b".into(), ..create("/e") });
    assert_eq!(redundancy(&fs, "/e"), FileRedundancy::Replicated(3));
}

#[test]
fn policies_are_administered_by_superusers() {
    let mut fs = Fs::new();
    let enable = |name: &str| EnableEcPolicy { name: name.into() };
    let error = fs.run(user("bob"), enable("XOR-2-1-1024k")).unwrap_err();
    assert_eq!(error.to_string(), "Access denied for user bob. Superuser privilege is required");
    assert_eq!(fs.ok(enable("XOR-2-1-1024k")), Outcome::Flag(true));
    assert_eq!(fs.ok(enable("XOR-2-1-1024k")), Outcome::Flag(false));
    assert_eq!(fs.ok(DisableEcPolicy { name: "XOR-2-1-1024k".into() }), Outcome::Flag(true));
    assert_eq!(said(&fs.err(enable("none"))).1, "The policy name none does not exist");
    let spec = |codec: &str, k, m, cell_len| PolicySpec { codec: codec.into(), k, m, cell_len };
    let added = fs.ok(AddEcPolicies {
        policies: vec![
            spec("rs", 4, 2, 65536),
            spec("rs", 6, 3, 1 << 20),
            spec("RS", 6, 3, 1 << 20),
            spec(" rs", 6, 3, 1 << 20),
            spec("clay", 4, 2, 65536),
            spec("rs", 14, 3, 65536),
            spec("rs", 4, 2, 8 << 20),
        ],
    });
    let Outcome::PoliciesAdded(added) = added else { panic!() };
    let told: Vec<_> = added
        .iter()
        .map(|one| match (&one.policy, &one.error) {
            (Some(policy), None) => format!("{} {}", policy.id.0, policy.name),
            (None, Some(error)) => error.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            "64 RS-4-2-64k",
            "1 RS-6-3-1024k",
            "Codec name RS is not supported",
            "Codec name  rs is not supported",
            "Codec name clay is not supported",
            "Number of data and parity blocks in an EC group 17 should not exceed maximum 16",
            "Cell size 8388608 should not exceed maximum 4194304 bytes",
        ]
    );
    let mut past = Fs::with(Settings { rules: 5, ..Settings::default() });
    let added = past.ok(AddEcPolicies { policies: vec![spec("RS", 4, 2, 65536)] });
    let Outcome::PoliciesAdded(added) = added else { panic!() };
    assert_eq!(added[0].error, None, "a log from before is replayed as it was");
    fs.set_policy("/", "RS-4-2-64k");
    fs.write("/f", &[9]);
    fs.ok(RemoveEcPolicy { name: "RS-4-2-64k".into() });
    assert_eq!(policy_of(&fs, "/f").as_deref(), Some("RS-4-2-64k"));
    assert_eq!(said(&fs.err(set("/", "RS-4-2-64k"))).0, "HadoopIllegalArgumentException");
    assert_eq!(
        said(&fs.err(RemoveEcPolicy { name: "XOR-2-1-1024k".into() })).1,
        "System erasure coding policy XOR-2-1-1024k cannot be removed"
    );
}

#[test]
fn sums_of_content_name_the_policy_as_hadoop_does() {
    use cairn_namespace::ops::ec::UnsetEcPolicy;
    use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
    use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot};
    use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
    use cairn_namespace::query::content_summary;
    const RS: &str = "RS-3-2-1024k";
    let name = |fs: &Fs, path: &str| content_summary(&fs.store, &root(), path).unwrap().policy;
    let mut fs = Fs::new();
    fs.mkdirs("/e/d/sub");
    assert_eq!(name(&fs, "/e/d"), "");
    fs.set_policy("/e", RS);
    fs.write("/e/d/f", &[5]);
    for path in ["/e", "/e/d", "/e/d/sub", "/e/d/f"] {
        assert_eq!(name(&fs, path), RS, "{path}");
    }
    // Whoever has attributes of its own is not asked further up.
    let note = || XAttrName { space: XAttrSpace::User, name: "note".into() };
    let set = SetXAttr {
        path: "/e/d".into(),
        name: note(),
        value: vec![1],
        create: true,
        replace: false,
    };
    fs.ok(set);
    for path in ["/e/d", "/e/d/sub"] {
        assert_eq!(name(&fs, path), "", "{path}");
    }
    assert_eq!(name(&fs, "/e/d/f"), RS);
    fs.ok(AllowSnapshot { path: "/e".into() });
    fs.ok(CreateSnapshot { path: "/e".into(), name: "s".into() });
    fs.ok(RemoveXAttr { path: "/e/d".into(), name: note() });
    assert_eq!(name(&fs, "/e/d/sub"), RS);
    let policy = |policy: Option<&str>| SetStoragePolicy {
        path: "/e/d".into(),
        policy: policy.map(str::to_string),
    };
    fs.ok(policy(Some("HOT")));
    assert_eq!(name(&fs, "/e/d/sub"), "");
    fs.ok(policy(None));
    assert_eq!(name(&fs, "/e/d/sub"), RS);
    // A snapshot has its own directory as it was, and the rest as it is.
    fs.ok(UnsetEcPolicy { path: "/e".into() });
    for (path, wanted) in
        [("/e", ""), ("/e/.snapshot/s", RS), ("/e/.snapshot/s/d", ""), ("/e/d/f", RS)]
    {
        assert_eq!(name(&fs, path), wanted, "{path}");
    }
    fs.ok(cairn_namespace::ops::ec::SetEcPolicy {
        path: "/e".into(),
        policy: Some("replication".into()),
    });
    assert_eq!(name(&fs, "/e/d"), "replication");
    fs.write("/e/g", &[5]);
    assert_eq!(name(&fs, "/e/g"), "Replicated");
}
