package cairn.interop;

import cairn.interop.differential.Differential;
import java.io.File;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The same random calls to the target and to a real Hadoop, whose answers must be the same. */
final class DifferentialTests {
  /** Of each seed, unless the system property {@code interop.calls} says otherwise. */
  private static final int CALLS = 300;

  /** Pools are few and common to all: among many other calls nothing would come of these. */
  private static final Set<String> CACHING = Set.of("caching", "tree");

  /** What is at the edge of what can be asked, on trees that others have made. */
  private static final Set<String> EDGES = Set.of("edges", "tree", "files", "quotas", "snapshots");

  /** Whatever has been answered is there after the process was killed. */
  private static final Set<String> RESTARTS =
      Set.of("restarts", "tree", "acls", "files", "attributes", "ec", "quotas", "snapshots");

  /** Zones with what goes in and out of them. */
  private static final Set<String> ENCRYPTION =
      Set.of("encryption", "tree", "files", "attributes", "quotas", "snapshots");

  /** Files in all the ways in which they can be made, and paths that lead into snapshots. */
  private static final Set<String> PATHS =
      Set.of("creates", "snapshot-paths", "tree", "acls", "files", "attributes", "ec", "quotas", "snapshots");

  /** Safe mode comes and goes. */
  private static final Set<String> SAFE_MODE = Set.of("safe-mode", "edges", "creates", "tree", "files", "snapshots");

  /** Snapshots that are deleted in order, and trash of directories that have some. */
  private static final Set<String> ORDERED =
      Set.of("ordered", "tree", "files", "attributes", "acls", "ec", "quotas", "snapshots");

  private static final Map<String, String> ORDERED_KEYS =
      Map.of(
          "dfs.namenode.snapshot.deletion.ordered", "true",
          // Nobody knows when: what is marked stays until it is deleted again.
          "dfs.namenode.snapshot.deletion.ordered.gc.period.ms", "86400000",
          "dfs.namenode.snapshot.trashroot.enabled", "true",
          "dfs.permissions.allow.owner.set.quota", "true");

  /** Whatever has a limit that a key sets. */
  private static final Set<String> LIMITS =
      Set.of("edges", "creates", "tree", "files", "attributes", "acls", "ec", "quotas", "snapshots");

  private static final Map<String, String> LIMITS_KEYS =
      Map.ofEntries(
          Map.entry("dfs.namenode.fs-limits.max-component-length", "20"),
          Map.entry("dfs.namenode.fs-limits.max-directory-items", "6"),
          Map.entry("dfs.namenode.fs-limits.max-blocks-per-file", "2"),
          Map.entry("dfs.namenode.fs-limits.max-xattrs-per-inode", "2"),
          Map.entry("dfs.namenode.fs-limits.max-xattr-size", "8"),
          Map.entry("dfs.replication.max", "3"),
          Map.entry("dfs.ls.limit", "2"),
          Map.entry("dfs.batched.ls.limit", "2"),
          Map.entry("dfs.namenode.list.openfiles.num.responses", "2"),
          Map.entry("dfs.namenode.snapshot.max.limit", "2"),
          Map.entry("dfs.namenode.snapshot.filesystem.limit", "3"),
          Map.entry("dfs.namenode.snapshot.capture.openfiles", "true"),
          Map.entry("dfs.namenode.snapshot.skip.capture.accesstime-only-change", "true"),
          Map.entry("dfs.namenode.snapshotdiff.allow.snap-root-descendant", "false"),
          Map.entry("dfs.namenode.snapshotdiff.listing.limit", "2"),
          Map.entry("dfs.permissions.ContentSummary.subAccess", "true"),
          Map.entry("dfs.namenode.posix.acl.inheritance.enabled", "false"));

  /** Files that are put into groups as soon as they are closed, against replicated ones. */
  private static final Set<String> CONTIGUOUS =
      Set.of("groups", "tree", "files", "attributes", "acls", "snapshots");

  private static final String POLICY = "RS-3-2-contiguous";

  /** How the names of the tests begin that have one pair of clusters together. */
  private static final List<String> ON_ALL =
      List.of("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "encryption", "paths", "safe-mode", "caching", "edges", "restarts");

  private DifferentialTests() {}

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("differential/")) {
      return;
    }
    Map<String, String> keys = x.keys();
    keys.put("hadoop.user.group.static.mapping.overrides", "alice=staff;bob=staff,dev;carol=others");
    keys.put("dfs.namenode.fs-limits.min-block-size", "512");
    keys.put("dfs.blocksize", "1048576");
    // Nobody fetches the requests.
    keys.put("dfs.storage.policy.satisfier.mode", "external");
    // Where nobody is asked what modes allow, owners are asked for all the same.
    runWith(x, "open", keys, Map.of("dfs.permissions.enabled", "false"), PATHS);
    runWith(x, "ordered", keys, ORDERED_KEYS, ORDERED);
    runWith(x, "limits", keys, LIMITS_KEYS, LIMITS);
    contiguous(x, keys);
    if (ON_ALL.stream().noneMatch(name -> x.runner().wantsGroup("differential/" + name))) {
      return;
    }
    keys.put("dfs.namenode.list.encryption.zones.num.responses", "2");
    keys.put("dfs.namenode.list.reencryption.status.num.responses", "2");
    // Hadoop looks for what was left over only then.
    keys.put("dfs.namenode.reencrypt.sleep.interval", "200ms");
    try (Kms kms = new Kms(x.home(), new File(x.work(), "differential-kms"))) {
      keys.putAll(kms.settings());
      run(x, kms, keys);
    }
  }

  /** The same calls on a pair of clusters with other keys. */
  private static void runWith(
      Main.Context x, String name, Map<String, String> keys, Map<String, String> others, Set<String> families)
      throws Exception {
    if (!x.runner().wantsGroup("differential/" + name)) {
      return;
    }
    Map<String, String> all = new HashMap<>(keys);
    all.putAll(others);
    File there = new File(x.work(), "differential-" + name + "-hadoop");
    File here = new File(x.work(), "differential-" + name);
    try (ClusterProcess hadoop = new ClusterProcess(new Target(null), there, 5, 1, audited(all, there));
        ClusterProcess target = new ClusterProcess(x.target(), here, 5, 1, audited(all, here));
        Differential both = connect(hadoop, audit(there), target, audit(here), null)) {
      int first = Integer.getInteger("interop.first", 0);
      for (int seed = first; seed < first + seeds(x) / 35; seed++) {
        int s = seed;
        x.runner().test("differential/" + name + "-" + s, () -> both.run(s, calls(), families));
      }
    }
  }

  /** The same calls on a pair of clusters, of which the target has everything below a contiguous policy. */
  private static void contiguous(Main.Context x, Map<String, String> keys) throws Exception {
    if (x.target().isHadoop() || !x.runner().wantsGroup("differential/contiguous")) {
      return;
    }
    Map<String, String> all = new HashMap<>(keys);
    all.putAll(GroupTests.AT_ONCE);
    // Single blocks as well.
    all.put("cairn.ec.contiguous.pays", "1000");
    File there = new File(x.work(), "differential-contiguous-hadoop");
    File here = new File(x.work(), "differential-contiguous");
    try (ClusterProcess hadoop = new ClusterProcess(new Target(null), there, 5, 1, audited(keys, there));
        ClusterProcess target = new ClusterProcess(x.target(), here, 5, 1, audited(all, here));
        Differential both = connect(hadoop, audit(there), target, audit(here), null)) {
      target.fs().enableErasureCodingPolicy(POLICY);
      both.contiguous(POLICY);
      int first = Integer.getInteger("interop.first", 0);
      for (int seed = first; seed < first + seeds(x) / 35; seed++) {
        int s = seed;
        x.runner().test("differential/contiguous-" + s, () -> both.run(s, calls(), CONTIGUOUS));
      }
      x.runner()
          .test(
              "differential/contiguous: groups were made",
              () -> {
                long formed =
                    Mixed.bean(target.httpAddress(), "Cairn:service=NameNode,name=ContiguousGroups")
                        .path("GroupsFormed")
                        .asLong();
                Runner.check(formed > 0, formed + " groups");
              });
    }
  }

  /** Every second seed is of erasure coded files as well. */
  private static Set<String> coded(int seed, Set<String> families) {
    Set<String> all = new HashSet<>(families);
    if (seed % 2 == 1) {
      all.addAll(Set.of("ec", "files"));
    }
    return all;
  }

  private static int seeds(Main.Context x) {
    return Integer.getInteger("interop.seeds", x.full() ? 1000 : 70);
  }

  private static int calls() {
    return Integer.getInteger("interop.calls", CALLS);
  }

  private static void run(Main.Context x, Kms kms, Map<String, String> keys) throws Exception {
    File there = new File(x.work(), "differential-hadoop");
    File here = new File(x.work(), "differential");
    try (ClusterProcess hadoop = new ClusterProcess(new Target(null), there, 5, 1, audited(keys, there));
        ClusterProcess target = new ClusterProcess(x.target(), here, 5, 1, audited(keys, here));
        Differential both = connect(hadoop, audit(there), target, audit(here), kms)) {
      int seeds = seeds(x);
      int first = Integer.getInteger("interop.first", 0);
      int calls = calls();
      for (int seed = first; seed < first + seeds; seed++) {
        int s = seed;
        x.runner().test("differential/" + s, () -> both.run(s, calls));
      }
      for (int seed = first; seed < first + seeds / 14; seed++) {
        int s = seed;
        x.runner().test("differential/encryption-" + s, () -> both.run(s, calls, coded(s, ENCRYPTION)));
      }
      for (int seed = first; seed < first + seeds / 35; seed++) {
        int s = seed;
        x.runner().test("differential/paths-" + s, () -> both.run(s, calls, PATHS));
        x.runner().test("differential/safe-mode-" + s, () -> both.run(s, calls, SAFE_MODE));
      }
      for (int seed = first; seed < first + seeds / 7; seed++) {
        int s = seed;
        x.runner().test("differential/caching-" + s, () -> both.run(s, calls, coded(s, CACHING)));
        x.runner().test("differential/edges-" + s, () -> both.run(s, calls, coded(s, EDGES)));
        x.runner().test("differential/restarts-" + s, () -> both.run(s, calls, RESTARTS));
      }
    }
  }

  /** The audit log of a cluster in {@code data}. */
  private static File audit(File data) {
    return new File(data.getPath() + ".audit");
  }

  private static Map<String, String> audited(Map<String, String> keys, File data) {
    Map<String, String> own = new HashMap<>(keys);
    own.put("cairn.namenode.audit-log", audit(data).getPath());
    return own;
  }

  private static Differential connect(
      ClusterProcess hadoop, File audit, ClusterProcess target, File targetAudit, Kms kms) throws Exception {
    for (String key : kms == null ? List.<String>of() : Differential.KEYS) {
      kms.make(key);
    }
    Differential.Keys keys = kms == null ? null : kms::roll;
    return new Differential(
        hadoop.uri(), hadoop.conf(), audit, target.uri(), target.conf(), targetAudit, target::restart, keys);
  }
}
