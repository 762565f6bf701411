package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.RollingUpgradeAction;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.server.balancer.Balancer;
import org.apache.hadoop.hdfs.server.mover.Mover;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.util.ToolRunner;

/** Hadoop's own Balancer and Mover, and Cairn's, on clusters that are uneven or have several types of storage. */
final class BalanceTests {
  private static final long MIB = 1 << 20;
  private static final long CAPACITY = 256 * MIB;

  private final Main.Context x;

  private BalanceTests(Main.Context x) {
    this.x = x;
  }

  static void run(Main.Context x) throws Exception {
    BalanceTests t = new BalanceTests(x);
    if (x.target().isHadoop()) {
      // Its DataNodes cannot be told a small capacity on a large disk.
      return;
    }
    for (String who : List.of("Hadoop's Balancer", "cairn balance")) {
      String name = "balance/" + who + " evens out what new DataNodes made uneven";
      x.runner().test(name, () -> t.balance(who.startsWith("Hadoop")));
    }
    for (String who : List.of("Hadoop's Mover", "cairn mover")) {
      String name = "balance/" + who + " brings cold files to archive storage";
      x.runner().test(name, () -> t.move(who.startsWith("Hadoop")));
    }
  }

  /** A NameNode and DataNodes that come one by one, each a process of its own. */
  private final class Machines implements AutoCloseable {
    private final File data;
    private final File conf;
    private final List<Process> processes = new ArrayList<>();
    private int count;

    Machines(String name) throws Exception {
      data = new File(x.work(), name);
      conf = new File(data, "conf");
      conf.mkdirs();
      int rpc = Ports.free();
      Configuration core = new Configuration(false);
      core.set("fs.defaultFS", "hdfs://127.0.0.1:" + rpc);
      Configuration hdfs = new Configuration(false);
      x.keys().forEach(hdfs::set);
      hdfs.set("cairn.datanode.capacity", "" + CAPACITY);
      hdfs.set("dfs.namenode.http-address", "127.0.0.1:" + Ports.free());
      hdfs.set("dfs.namenode.fs-limits.min-block-size", "1");
      // Room that is set aside for a block of unknown length.
      hdfs.set("dfs.blocksize", "" + 4 * MIB);
      // What a test cannot wait for, and blocks that are small for one.
      hdfs.set("dfs.balancer.getBlocks.min-block-size", "1");
      hdfs.set("dfs.balancer.max-no-move-interval", "3000");
      hdfs.set("dfs.balancer.block-move.timeout", "20000");
      hdfs.set("dfs.mover.movedWinWidth", "1000");
      hdfs.set("dfs.balancer.movedWinWidth", "1000");
      try (OutputStream a = new FileOutputStream(new File(conf, "core-site.xml"));
          OutputStream b = new FileOutputStream(new File(conf, "hdfs-site.xml"))) {
        core.writeXml(a);
        hdfs.writeXml(b);
      }
      launch("namenode", List.of("--data", new File(data, "name").getPath()));
    }

    private void launch(String role, List<String> own) throws Exception {
      List<String> args = new ArrayList<>(List.of(role, "--conf", conf.getPath()));
      args.addAll(own);
      File log = new File(data, role + processes.size() + ".log");
      Process p = x.target().launch(args, log);
      processes.add(p);
      BufferedReader in = p.inputReader(StandardCharsets.UTF_8);
      if (in.readLine() == null) {
        throw new IOException(role + " did not start; see " + log);
      }
    }

    /** Starts {@code more} DataNodes with a volume of each of the types. */
    void add(int more, StorageType... types) throws Exception {
      for (int i = 0; i < more; i++, count++) {
        List<String> own = new ArrayList<>();
        for (StorageType type : types) {
          File dir = new File(data, "dn" + count + "-" + type);
          own.addAll(List.of("--data", "[" + type + "]" + dir.getPath()));
        }
        for (String port : List.of("address", "ipc.address", "http.address")) {
          own.addAll(List.of("-D", "dfs.datanode." + port + "=127.0.0.1:" + Ports.free()));
        }
        launch("datanode", own);
      }
      Target.waitForLive(fs(), count);
    }

    Configuration conf() {
      Configuration c = new HdfsConfiguration();
      c.addResource(new Path(conf.getPath(), "core-site.xml"));
      c.addResource(new Path(conf.getPath(), "hdfs-site.xml"));
      return Target.impatient(c);
    }

    DistributedFileSystem fs() throws IOException {
      return (DistributedFileSystem) FileSystem.get(conf());
    }

    /** Runs a main class of Hadoop's in a JVM of its own and returns its exit code. */
    int hadoops(Class<?> tool, String... arguments) throws Exception {
      String path = conf.getPath() + File.pathSeparator + System.getProperty("java.class.path");
      List<String> command = new ArrayList<>();
      command.add(System.getProperty("java.home") + "/bin/java");
      command.addAll(List.of("-Xmx512m", "-XX:+UseSerialGC", "-cp", path));
      command.addAll(List.of("-Dlog4j.configuration=log4j-stderr.properties", tool.getName()));
      command.addAll(List.of(arguments));
      return run(command);
    }

    /** Runs a {@code cairn} command and returns its exit code. */
    int cairns(String... arguments) throws Exception {
      List<String> command = new ArrayList<>(List.of(x.cairn().getPath()));
      command.addAll(List.of(arguments));
      command.addAll(List.of("--conf", conf.getPath()));
      return run(command);
    }

    /** Runs Hadoop's balancer or Cairn's and returns its exit code. */
    int balance(boolean hadoops) throws Exception {
      return hadoops ? hadoops(Balancer.class, "-threshold", "10") : cairns("balance", "--threshold", "10");
    }

    private int run(List<String> command) throws Exception {
      File log = new File(data, "tool.log");
      return new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start().waitFor();
    }

    @Override
    public void close() throws Exception {
      FileSystem.closeAll();
      processes.forEach(Process::destroyForcibly);
      for (Process p : processes) {
        p.waitFor();
      }
    }
  }

  private static double spread(DistributedFileSystem fs) throws IOException {
    DatanodeInfo[] live = fs.getDataNodeStats(DatanodeReportType.LIVE);
    double most = Arrays.stream(live).mapToDouble(DatanodeInfo::getDfsUsedPercent).max().orElse(0);
    double least = Arrays.stream(live).mapToDouble(DatanodeInfo::getDfsUsedPercent).min().orElse(0);
    return most - least;
  }

  /** Files of both kinds under {@code root}, with their digests. */
  private static Map<Path, String> store(DistributedFileSystem fs, String root, int files, long length)
      throws Exception {
    fs.enableErasureCodingPolicy("RS-3-2-1024k");
    Path ec = new Path(root, "ec");
    fs.mkdirs(ec);
    fs.setErasureCodingPolicy(ec, "RS-3-2-1024k");
    Map<Path, String> stored = new TreeMap<>();
    for (int i = 0; i < files; i++) {
      Path striped = new Path(ec, "f" + i);
      stored.put(striped, FileTests.store(fs, striped, i, length, 4 * MIB));
      Path whole = new Path(root, "3x/f" + i);
      stored.put(whole, FileTests.store(fs, whole, 1000 + i, length / 2, 4 * MIB));
    }
    return stored;
  }

  private static void readAll(DistributedFileSystem fs, Map<Path, String> stored) throws IOException {
    for (Map.Entry<Path, String> e : stored.entrySet()) {
      try (FSDataInputStream in = fs.open(e.getKey())) {
        equal(e.getValue(), Data.digest(in), "SHA-256 of " + e.getKey());
      }
    }
  }

  /** Waits until every block has exactly the replicas or units that it should have, each once. */
  private static void waitWhole(DistributedFileSystem fs, Set<Path> paths) throws Exception {
    long end = System.nanoTime() + 60_000_000_000L;
    String wrong = "";
    while (System.nanoTime() < end) {
      wrong = "";
      for (Path path : paths) {
        FileStatus status = fs.getFileStatus(path);
        String src = path.toUri().getPath();
        for (LocatedBlock b : fs.getClient().getLocatedBlocks(src, 0, Long.MAX_VALUE).getLocatedBlocks()) {
          int wanted = status.getReplication();
          if (b instanceof LocatedStripedBlock striped) {
            long cells = (b.getBlockSize() + MIB - 1) / MIB;
            wanted = (int) Math.min(3, cells) + 2;
            Set<Byte> units = new HashSet<>();
            for (byte unit : striped.getBlockIndices()) {
              units.add(unit);
            }
            if (units.size() < wanted) {
              wrong = path + " has only the units " + units;
            }
          }
          Set<String> nodes = new HashSet<>();
          Arrays.stream(b.getLocations()).forEach(n -> nodes.add(n.getDatanodeUuid()));
          if (nodes.size() != wanted || b.getLocations().length != wanted) {
            wrong = path + ": " + b.getLocations().length + " places on " + nodes.size() + " nodes, not " + wanted;
          }
        }
      }
      if (wrong.isEmpty()) {
        return;
      }
      Thread.sleep(200);
    }
    throw new AssertionError("after 60 s: " + wrong);
  }

  private void balance(boolean hadoops) throws Exception {
    try (Machines machines = new Machines(hadoops ? "hadoop-balance" : "cairn-balance")) {
      machines.add(5, StorageType.DISK);
      DistributedFileSystem fs = machines.fs();
      Map<Path, String> stored = store(fs, "/b", 8, 24 * MIB);
      waitWhole(fs, stored.keySet());
      machines.add(3, StorageType.DISK);
      Thread.sleep(1500);
      double before = spread(fs);
      check(before > 40, "uneven enough to begin with: " + before);
      fs.setSafeMode(SafeModeAction.ENTER);
      fs.rollingUpgrade(RollingUpgradeAction.PREPARE);
      equal(249, machines.balance(hadoops), "exit code while an upgrade lasts");
      fs.rollingUpgrade(RollingUpgradeAction.FINALIZE);
      equal(0, machines.balance(hadoops), "exit code");
      waitWhole(fs, stored.keySet());
      double after = 100;
      for (int i = 0; i < 100 && after > 25; i++) {
        Thread.sleep(100);
        after = spread(fs);
      }
      check(after <= 25, "the spread went from " + before + " to " + after + " points only");
      readAll(fs, stored);
    }
  }

  private void move(boolean hadoops) throws Exception {
    try (Machines machines = new Machines(hadoops ? "hadoop-mover" : "cairn-mover")) {
      // Some move within a node, some between nodes.
      machines.add(4, StorageType.DISK, StorageType.ARCHIVE);
      machines.add(2, StorageType.DISK);
      machines.add(2, StorageType.ARCHIVE);
      DistributedFileSystem fs = machines.fs();
      Map<Path, String> stored = store(fs, "/m", 3, 9 * MIB + 17);
      Map<Path, String> warm = store(fs, "/stays", 1, 5 * MIB);
      for (Path path : stored.keySet()) {
        equal(Set.of(StorageType.DISK), types(fs, path), "types of " + path);
      }
      fs.setStoragePolicy(new Path("/m"), "COLD");
      if (!hadoops) {
        // What only a snapshot has moves as well; Hadoop's Mover looks for snapshots by a name that has none.
        fs.allowSnapshot(new Path("/m"));
        fs.createSnapshot(new Path("/m"), "s");
        for (String gone : List.of("ec/f0", "3x/f0")) {
          fs.delete(new Path("/m", gone), false);
          stored.put(new Path("/m/.snapshot/s", gone), stored.remove(new Path("/m", gone)));
        }
      }
      int code =
          hadoops ? moveInThisJvm(machines.conf()) : machines.cairns("mover", "/m");
      equal(0, code, "exit code");
      waitWhole(fs, stored.keySet());
      for (Path path : stored.keySet()) {
        equal(Set.of(StorageType.ARCHIVE), types(fs, path), "types of " + path);
      }
      for (Path path : warm.keySet()) {
        equal(Set.of(StorageType.DISK), types(fs, path), "types of " + path);
      }
      readAll(fs, stored);
      // New files go there at once.
      Path late = new Path("/m/ec/late");
      FileTests.store(fs, late, 5, 3 * MIB, 4 * MIB);
      equal(Set.of(StorageType.ARCHIVE), types(fs, late), "types of " + late);
    }
  }

  /** The Mover of 3.5.0 registers its metrics in each iteration, which fails at the second one unless that is allowed. */
  private static int moveInThisJvm(Configuration conf) throws Exception {
    DefaultMetricsSystem.setMiniClusterMode(true);
    return ToolRunner.run(conf, new Mover.Cli(), new String[] {"-p", "/m"});
  }

  private static Set<StorageType> types(DistributedFileSystem fs, Path path) throws IOException {
    Set<StorageType> types = new HashSet<>();
    String src = path.toUri().getPath();
    for (LocatedBlock b : fs.getClient().getLocatedBlocks(src, 0, Long.MAX_VALUE).getLocatedBlocks()) {
      types.addAll(Arrays.asList(b.getStorageTypes()));
    }
    return types;
  }
}
