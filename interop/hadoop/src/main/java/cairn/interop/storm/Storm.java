package cairn.interop.storm;

import java.io.File;
import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.AddErasureCodingPolicyResponse;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.io.erasurecode.ECSchema;

/**
 * A NameNode and twelve DataNodes, processes of Cairn, written to and read by Hadoop's client and Cairn's, while everything
 * fails that may; then all is healed, and every acknowledged byte must be there. See {@code interop/storm/README.md}.
 */
public final class Storm {
  /** A call that should have ended by itself, with an answer or an error. */
  static final class Hung extends IOException {
    Hung(String message) {
      super(message);
    }
  }

  private static final int CELL = 64 * 1024;
  private static volatile long start = System.nanoTime();
  private static PrintWriter notes;

  /** Held for reading by calls that change which files have which blocks, for writing while these are counted. */
  final ReentrantReadWriteLock names = new ReentrantReadWriteLock(true);

  final Counts counts = new Counts();
  final List<Worker> workers = new ArrayList<>();
  private final List<String> violations = new CopyOnWriteArrayList<>();
  private final File work;
  private final Cluster cluster;
  final Ration ration;
  private volatile boolean isOver;
  private long progressAt = 10_000;

  private Storm(File client, Cluster cluster, long seed) throws Exception {
    work = cluster.work;
    this.cluster = cluster;
    ration = new Ration(cluster);
    DistributedFileSystem admin = cluster.connect();
    awaitService(admin);
    Map<String, ErasureCodingPolicy> policies = new HashMap<>();
    ECSchema[] schemas = {new ECSchema("rs", 3, 2), new ECSchema("rs", 6, 3), new ECSchema("xor", 2, 1)};
    for (ECSchema schema : schemas) {
      ErasureCodingPolicy policy = new ErasureCodingPolicy(schema, CELL);
      AddErasureCodingPolicyResponse r = admin.addErasureCodingPolicies(new ErasureCodingPolicy[] {policy})[0];
      if (!r.isSucceed()) {
        throw new IOException(r.getErrorMsg());
      }
      admin.enableErasureCodingPolicy(r.getPolicy().getName());
      policies.put(schema.getCodecName() + schema.getNumDataUnits(), r.getPolicy());
    }
    int number = 0;
    for (String kind : List.of("copies2", "copies3", "rs3", "rs6", "xor2")) {
      for (boolean isHadoop : new boolean[] {true, false}) {
        String folder = "/storm-" + kind + (isHadoop ? "-hadoop" : "-cairn");
        admin.mkdirs(new Path(folder));
        if (policies.containsKey(kind)) {
          admin.setErasureCodingPolicy(new Path(folder), policies.get(kind).getName());
        }
        admin.allowSnapshot(new Path(folder));
        ErasureCodingPolicy policy = policies.get(kind);
        int copies = policy != null ? 0 : kind.charAt(6) - '0';
        int stripe = policy == null ? 0 : policy.getNumDataUnits() * CELL;
        Client own = client(isHadoop, client, folder);
        workers.add(new Worker(this, folder, copies, stripe, own, admin, seed * 100 + number++));
      }
    }
  }

  private Client client(boolean isHadoop, File program, String name) throws IOException {
    File log = new File(work, "client" + name.replace('/', '-') + ".log");
    return isHadoop ? new HadoopClient(cluster.connect()) : new CairnClient(program, cluster.conf, log);
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> flags = new HashMap<>();
    for (int i = 0; i < args.length; i++) {
      boolean valued = i + 1 < args.length && !args[i + 1].startsWith("--");
      flags.put(args[i], valued ? args[++i] : "");
    }
    int seconds = Integer.parseInt(flags.getOrDefault("--seconds", "60"));
    int patience = Integer.parseInt(flags.getOrDefault("--heal", "600"));
    long seed = Long.parseLong(flags.getOrDefault("--seed", "" + ThreadLocalRandom.current().nextInt(1_000_000)));
    Pattern wanted = Pattern.compile(flags.getOrDefault("--faults", ""));
    // The first process of its own space of processes: what it starts ends with it.
    boolean isolated = ProcessHandle.current().pid() == 1 && !flags.containsKey("--plain");
    File work = new File(flags.getOrDefault("--work", "/tmp/cairn-storm-" + seed + "-" + System.currentTimeMillis()));
    work.mkdirs();
    notes = new PrintWriter(new FileWriter(new File(work, "storm.log")), true);
    System.out.println("storm: seed " + seed + ", " + seconds + " s, files in " + work);
    int nameNodes = Integer.parseInt(flags.getOrDefault("--namenodes", "1"));
    List<Fault> plan = Fault.plan(seed, seconds, wanted, isolated, nameNodes);
    if (!isolated) {
      for (Fault.Kind k : Fault.Kind.values()) {
        if (k.needsIsolation) {
          say("NOT RUN: " + k + " (" + k.means + "): it needs the right to have namespaces");
        }
      }
    }
    Cluster cluster = new Cluster(new File(flags.get("--cairn")), work, isolated, nameNodes);
    Storm storm = new Storm(new File(flags.get("--client")), cluster, seed);
    boolean isGood = false;
    try {
      isGood = storm.run(plan, seconds, patience, new File(flags.get("--client")), seed);
    } catch (Throwable e) {
      say("FAILED: " + trace(e));
    }
    if (isGood && !flags.containsKey("--keep")) {
      storm.cluster.end();
      cleanUp(storm, work);
    } else if (!isGood) {
      System.out.println("the plan of faults:");
      plan.forEach(f -> System.out.println("  " + f));
      String members = nameNodes > 1 ? " --namenodes " + nameNodes : "";
      String filter = flags.containsKey("--faults") ? " --faults '" + wanted + "'" : "";
      System.out.println("again: interop/storm/run --cairn BINARY --seconds " + seconds + " --seed " + seed + members + filter);
      storm.keepDisks();
      storm.cluster.end();
    }
    System.out.println(isGood ? "storm passed" : "storm FAILED; logs and disks in " + work);
    System.exit(isGood ? 0 : 1);
  }

  private static void cleanUp(Storm storm, File work) throws Exception {
    if (storm.cluster.isolated) {
      for (Cluster.Node n : storm.cluster.nodes) {
        for (File v : n.volumes) {
          Cluster.run("umount", v.getPath());
        }
      }
      for (Cluster.NameNode n : storm.cluster.nameNodes) {
        Cluster.run("umount", n.folder.getPath());
      }
    }
    notes.close();
    FileUtil.fullyDelete(work);
  }

  /** Volumes in memory end with this process. */
  private void keepDisks() throws Exception {
    if (cluster.isolated) {
      Cluster.run("sh", "-c", "cd '" + work + "' && mkdir disks && cp -a nn[0-9] dn*[0-9] clone disks && rm -rf images");
    }
  }

  private boolean run(List<Fault> plan, int seconds, int patience, File client, long seed) throws Exception {
    Faults faults = new Faults(this, cluster);
    List<Thread> threads = new ArrayList<>(workers);
    for (int i = 0; i < 2; i++) {
      String name = i == 0 ? "Hadoop" : "Cairn";
      threads.add(new Reader(this, name, client(i == 0, client, "/reader"), workers, seed * 100 + 50 + i));
    }
    start = System.nanoTime();
    threads.forEach(Thread::start);
    faults.run(plan, seconds);
    isOver = true;
    say("the storm is over: " + counts + "; faults " + counts.faults());
    if (!violations.isEmpty()) {
      return false;
    }
    faults.heal();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(patience);
    String hung = "";
    while (threads.stream().anyMatch(Thread::isAlive) || !faults.isHealed()) {
      if (System.nanoTime() > end) {
        for (Thread t : threads) {
          hung += t.isAlive() ? "\n    " + t.getName() + " " + Arrays.toString(t.getStackTrace()) : "";
        }
        violated("not healed after " + patience + " s" + hung);
        return false;
      }
      Thread.sleep(100);
    }
    new Check(this, cluster, faults, client("Cairn", client)).run(end);
    return violations.isEmpty();
  }

  private Client client(String name, File program) throws IOException {
    return client(name.equals("Hadoop"), program, "/check");
  }

  private static void awaitService(DistributedFileSystem admin) throws Exception {
    for (int i = 0; ; i++) {
      try {
        if (admin.getDataNodeStats().length >= Cluster.NODES) {
          return;
        }
      } catch (IOException e) {
        if (i > 300) {
          throw e;
        }
      }
      if (i > 600) {
        throw new IOException("the DataNodes do not come");
      }
      Thread.sleep(100);
    }
  }

  List<String> folders() {
    return workers.stream().map(w -> w.folder).toList();
  }

  boolean isOver() {
    return isOver;
  }

  /** Something is not as it must be: the storm ends. */
  void violated(String what) {
    say("VIOLATED: " + what);
    violations.add(what);
    isOver = true;
  }

  void progress() {
    if (millis() > progressAt) {
      progressAt += 10_000;
      say(counts.toString());
    }
  }

  static long millis() {
    return (System.nanoTime() - start) / 1_000_000;
  }

  static String elapsed() {
    return String.format(Locale.ROOT, "%6.1f s", millis() / 1e3);
  }

  /** A line of the log of the storm. */
  static void note(String what) {
    notes.println(elapsed() + " " + Thread.currentThread().getName() + ": " + what);
  }

  static synchronized void say(String what) {
    System.out.println(elapsed() + "  " + what);
    note(what);
  }

  static String trace(Throwable e) {
    StringWriter text = new StringWriter();
    e.printStackTrace(new PrintWriter(text));
    return text.toString().trim();
  }
}
