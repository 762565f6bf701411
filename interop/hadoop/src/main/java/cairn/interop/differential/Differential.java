package cairn.interop.differential;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;

/** Two file systems that get the same calls, and the search for the fewest calls that tell them apart. */
public final class Differential implements AutoCloseable {
  /** Keys that calls name. */
  public static final List<String> KEYS = EncryptionCalls.KEYS;

  /** Who makes new versions of keys. */
  public interface Keys {
    void roll(String name) throws Exception;
  }

  /** Where answers differ: after how many calls, and what was answered. */
  private record Difference(int at, Call call, String wanted, String seen) {}

  /** Families of calls that go together. */
  private static final List<Set<String>> FAMILIES =
      List.of(
          families("tree,acls,files,attributes,ec,quotas,snapshots"),
          families("tree,files,attributes,quotas,quota-types,snapshots"),
          families("tree,raw,acls,files,attributes,ec,quotas,snapshots"),
          families("tree,acls,files,attributes,ec,quotas,snapshots"),
          families("tree,files,attributes,ec,quotas,quota-types,snapshots"),
          families("tree,raw,acls,files,attributes,ec,quotas,snapshots"));

  /** Calls that change nothing. */
  private static final Pattern READS = Pattern.compile("^(get|list|check|is)");

  /** Failures that come after the folders above were made. */
  private static final Pattern HALFWAY =
      Pattern.compile("^\\S*(QuotaExceeded|PathComponentTooLong|MaxDirectoryItemsExceeded|QuotaByStorageType|HadoopIllegalArgumentException: (.*is a reserved name|Cannot find a block policy)|IllegalArgumentException: Illagal value: PREFERRED_BLOCK_SIZE)");

  /** Calls that may put one file in the place of another. */
  private static final Pattern OVERWRITES = Pattern.compile("^(create|write) ");

  /** Calls that the audit log tells of in another way, see docs/deviations.md. */
  private static final Pattern TOLD_OTHERWISE =
      Pattern.compile(
          "^(getBatchedListing|checkAccess (/\\.reserved/|\\S*/ )|restart)");

  private final Side hadoop;
  private final Side target;
  private final ExecutorService threads = Executors.newFixedThreadPool(2);
  private final List<Set<String>> families;
  private final Keys keys;
  private int runs;

  /**
   * Connects to both. The system property {@code interop.families} names the families of calls to make. {@code restart}
   * ends the target by SIGKILL and starts it again; Hadoop stays as it is. Both have the same {@code keys},
   * {@link #KEYS} among them; null where there are none, nor calls on zones. Both write audit logs.
   */
  public Differential(
      String hadoop,
      Configuration hadoopConf,
      File hadoopAudit,
      String target,
      Configuration targetConf,
      File targetAudit,
      Call.Act restart,
      Keys keys)
      throws Exception {
    this.keys = keys;
    String named = System.getProperty("interop.families");
    families = named == null ? FAMILIES : List.of(families(named));
    boolean reserved = families.stream().anyMatch(f -> f.contains("raw"));
    this.hadoop =
        new Side(URI.create(hadoop), hadoopConf, new Audit(hadoopAudit), Generator.USERS, reserved, () -> {});
    this.target =
        new Side(URI.create(target), targetConf, new Audit(targetAudit), Generator.USERS, reserved, restart);
    for (Side side : List.of(this.hadoop, this.target)) {
      for (String policy : List.of("RS-3-2-1024k", "XOR-2-1-1024k")) {
        side.superuser().enableErasureCodingPolicy(policy);
      }
      for (String key : keys == null ? List.<String>of() : EncryptionCalls.KEYS) {
        side.superuser().mkdirs(EncryptionCalls.idle(key), FsPermission.getDirDefault(), true);
        side.superuser().createEncryptionZone(EncryptionCalls.idle(key), key);
      }
    }
  }

  private static Set<String> families(String names) {
    return Set.of(names.split(","));
  }

  /** Makes {@code n} calls drawn from {@code seed}; an AssertionError tells the fewest that were answered otherwise. */
  public void run(long seed, int n) throws Exception {
    run(seed, n, families.get((int) (seed % families.size())));
  }

  /** The same with calls of these families only. */
  public void run(long seed, int n, Set<String> families) throws Exception {
    Generator generator = new Generator(seed, families);
    List<Call> calls = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      calls.add(generator.next());
    }
    Difference first = compare(calls);
    if (first != null) {
      List<Call> few = shrink(new ArrayList<>(calls.subList(0, first.at() + 1)));
      Difference last = compare(few);
      StringBuilder text = new StringBuilder("answers differ; the calls, the last one answered otherwise:");
      few.forEach(call -> text.append("\n      ").append(call));
      Difference shown = last == null ? first : last;
      text.append(last == null ? "\n    (not again with these calls alone: " + first.call() + ")" : "");
      text.append("\n    Hadoop: ").append(shown.wanted()).append("\n    here:   ").append(shown.seen());
      throw new AssertionError(text.toString());
    }
  }

  private Difference compare(List<Call> calls) throws Exception {
    // The same length at any time, so that limits on paths are met alike.
    String root = String.format("/run%08d", runs++);
    boolean leveled = false;
    try {
      leaveSafeMode();
      hadoop.begin(root);
      target.begin(root);
      for (int i = 0; i < calls.size(); i++) {
        Call call = calls.get(i);
        if (call.text().startsWith("rollKey ")) {
          keys.roll(call.text().split(" ")[1]);
        }
        Future<Side.Outcome> there = threads.submit(() -> hadoop.outcome(call));
        Side.Outcome here = target.outcome(call);
        String wanted = there.get().answer();
        if (!wanted.equals(here.answer())) {
          return new Difference(i, call, wanted, here.answer());
        }
        if (!TOLD_OTHERWISE.matcher(call.text()).find() && !there.get().audit().equals(here.audit())) {
          return new Difference(i, call, "audit " + there.get().audit(), "audit " + here.audit());
        }
        if (HALFWAY.matcher(wanted).find()) {
          levelParents(root, call);
          leveled = true;
        }
        if (call.family().equals("quota-types") || call.text().startsWith("setQuota")) {
          hadoop.noteLimits(call.text().split(" ")[1].replace("~", root));
        }
        if (!READS.matcher(call.text()).find()) {
          hadoop.countAnew();
        }
      }
      // Nobody is told of what came before a restart.
      leaveSafeMode();
      boolean restarted = calls.stream().anyMatch(call -> call.family().equals("restarts"));
      return leveled || restarted || calls.isEmpty() ? null : compareEvents(calls);
    } finally {
      leaveSafeMode();
      hadoop.end();
      target.end();
    }
  }

  /** Calls may have put both into it. */
  private void leaveSafeMode() throws IOException {
    for (Side side : List.of(hadoop, target)) {
      side.superuser().setSafeMode(SafeModeAction.SAFEMODE_LEAVE, false);
    }
  }

  /** Compares what those are told who have watched. */
  private Difference compareEvents(List<Call> calls) throws Exception {
    List<String> wanted = hadoop.events();
    List<String> seen = target.events();
    for (int i = 0; i < Math.max(wanted.size(), seen.size()); i++) {
      String there = i < wanted.size() ? wanted.get(i) : "no more events";
      String here = i < seen.size() ? seen.get(i) : "no more events";
      if (!there.equals(here)) {
        int last = calls.size() - 1;
        return new Difference(last, calls.get(last), "event " + i + ": " + there, "event " + i + ": " + here);
      }
    }
    return null;
  }

  /**
   * From now on puts the target's files under the contiguous policy of that name, which is in force there. What it makes
   * of space, and how a file is cut into blocks after an append or a truncate, is compared no more.
   */
  public void contiguous(String policy) {
    hadoop.forgetSpace(null);
    target.forgetSpace(policy);
  }

  /**
   * Takes away the folders that Hadoop made above a name before it found that the name may not be, and the file that it
   * deleted to put another in its place: a call that fails changes nothing here.
   */
  private void levelParents(String root, Call call) throws Exception {
    String named = call.text().split(" ")[1].replace("/.reserved/raw", "").replace("~", root);
    String path = named.replaceAll("/\\.reserved/\\.inodes/\\[([^\\]]*)\\]", "$1").replaceAll("/\\.(?=/|$)", "");
    if (OVERWRITES.matcher(call.text()).find() && target.has(path) && !hadoop.has(path)) {
      target.remove(path);
    }
    for (int end = path.lastIndexOf('/'); end >= root.length(); end = path.lastIndexOf('/', end - 1)) {
      String folder = path.substring(0, end);
      if (hadoop.has(folder) && !target.has(folder)) {
        hadoop.remove(folder);
      } else if (hadoop.has(folder)) {
        // Its children have changed on one side only.
        hadoop.superuser().setTimes(folder, 0, -1);
        target.superuser().setTimes(folder, 0, -1);
        return;
      }
    }
  }

  /** Leaves out calls, many at a time and then fewer, as long as the last call is still answered otherwise. */
  private List<Call> shrink(List<Call> calls) throws Exception {
    for (int chunk = calls.size() / 2; chunk >= 1; chunk /= 2) {
      for (int at = 0; at + chunk < calls.size(); ) {
        List<Call> fewer = new ArrayList<>(calls.subList(0, at));
        fewer.addAll(calls.subList(at + chunk, calls.size()));
        Difference d = compare(fewer);
        if (d != null) {
          calls = new ArrayList<>(fewer.subList(0, d.at() + 1));
        } else {
          at += chunk;
        }
      }
    }
    return calls;
  }

  @Override
  public void close() throws Exception {
    threads.shutdownNow();
    hadoop.close();
    target.close();
  }
}
