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
    runWithoutPermissions(x, keys);
    keys.put("dfs.namenode.list.encryption.zones.num.responses", "2");
    keys.put("dfs.namenode.list.reencryption.status.num.responses", "2");
    // Hadoop looks for what was left over only then.
    keys.put("dfs.namenode.reencrypt.sleep.interval", "200ms");
    try (Kms kms = new Kms(x.home(), new File(x.work(), "differential-kms"))) {
      keys.putAll(kms.settings());
      run(x, kms, keys);
    }
  }

  /** The same calls where nobody is asked what modes allow, and owners are asked for all the same. */
  private static void runWithoutPermissions(Main.Context x, Map<String, String> keys) throws Exception {
    Map<String, String> open = new HashMap<>(keys);
    open.put("dfs.permissions.enabled", "false");
    File there = new File(x.work(), "differential-open-hadoop");
    File here = new File(x.work(), "differential-open");
    try (ClusterProcess hadoop = new ClusterProcess(new Target(null), there, 5, 1, audited(open, there));
        ClusterProcess target = new ClusterProcess(x.target(), here, 5, 1, audited(open, here));
        Differential both = connect(hadoop, audit(there), target, audit(here), null)) {
      int first = Integer.getInteger("interop.first", 0);
      for (int seed = first; seed < first + seeds(x) / 35; seed++) {
        int s = seed;
        x.runner().test("differential/open-" + s, () -> both.run(s, calls(), PATHS));
      }
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
