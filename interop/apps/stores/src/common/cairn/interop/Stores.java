package cairn.interop;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;

/** What the tests of a store share: the cluster below it, ZooKeeper, and the command line. */
final class Stores implements AutoCloseable {
  /** One more than RS-3-2 needs, so that writers go on with whole groups when one is killed. */
  static final int NODES = 6;
  static final String POLICY = "RS-3-2-1024k";

  /** The tests of one store. */
  interface Group {
    void run(Stores stores) throws Exception;
  }

  private final Runner runner;
  private final File work;
  private final Roles roles;
  /** Of a cluster that somebody else runs, in the place of roles. */
  private final Configuration others;
  private final Server zooKeeper;
  private final int zooKeeperPort = Ports.free();
  private final int rows;

  private static Roles roles(Target target, File work) throws Exception {
    Map<String, String> keys = new HashMap<>();
    keys.put("dfs.namenode.safemode.extension", "0");
    keys.put("dfs.heartbeat.interval", "1");
    keys.put("dfs.namenode.heartbeat.recheck-interval", "1000");
    keys.put("dfs.namenode.redundancy.interval.seconds", "1");
    // One disk carries all nodes, so load says nothing about a node.
    keys.put("dfs.namenode.redundancy.considerLoad", "false");
    keys.put("dfs.permissions.enabled", "false");
    Roles roles = new Roles(target, new File(work, "hdfs"), NODES, keys);
    roles.fs().enableErasureCodingPolicy(POLICY);
    return roles;
  }

  private Stores(Runner runner, File work, Roles roles, Configuration others, boolean full) throws Exception {
    this.runner = runner;
    this.work = work;
    this.roles = roles;
    this.others = others;
    rows = full ? 100_000 : 20_000;
    File conf = new File(work, "zookeeper");
    zooKeeper =
        new Server(
            "zookeeper", work, conf, "256m", "-Dzookeeper.admin.enableServer=false", "org.apache.zookeeper.server.ZooKeeperServerMain", "" + zooKeeperPort, conf.getPath(), "1000", "100");
    conf.mkdirs();
    zooKeeper.start();
    Load.await("ZooKeeper answers", () -> zooKeeper.mustRun() && answers(zooKeeperPort));
  }

  /** On a cluster that somebody else runs, whose files of keys are in {@code conf}. */
  static Stores on(File conf, File work) throws Exception {
    Configuration others = new Configuration(false);
    others.addResource(new Path(conf.getPath(), "hdfs-site.xml"));
    return new Stores(null, work, null, others, false);
  }

  static boolean answers(int port) {
    try (Socket s = new Socket()) {
      s.connect(new InetSocketAddress("127.0.0.1", port), 1000);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  Roles roles() {
    return roles;
  }

  Runner runner() {
    return runner;
  }

  File work() {
    return work;
  }

  /** How many rows the largest table has. */
  int rows() {
    return rows;
  }

  int zooKeeperPort() {
    return zooKeeperPort;
  }

  String uri() {
    return others == null ? "hdfs://127.0.0.1:" + roles.rpcPort() : others.get("fs.defaultFS");
  }

  /** Keys of a store for its use of the cluster, with waits that a test can afford. */
  Configuration client() {
    Configuration c = others == null ? new Configuration(false) : new Configuration(others);
    c.set("fs.defaultFS", uri());
    c.set("dfs.replication", "3");
    c.set("dfs.client.socket-timeout", "10000");
    if (others == null) {
      // Without a second NameNode, a call that one fails ends HBase's servers.
      c.set("dfs.client.retry.policy.enabled", "true");
      c.set("dfs.client.retry.policy.spec", "500,100");
    }
    // So long Hadoop's writer of erasure coded files sleeps when a unit fails while another failure is being handled.
    c.set("dfs.client.datanode-restart.timeout", "1");
    // A copied and an erasure coded file with the same bytes have the same checksum then, which ExportSnapshot asks for.
    c.set("dfs.checksum.combine.mode", "COMPOSITE_CRC");
    return c;
  }

  /** Writes the files of keys that the servers of a store have on their class path. */
  void writeSite(File folder) throws IOException {
    folder.mkdirs();
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", uri());
    write(core, new File(folder, "core-site.xml"));
    // What begins with dfs does not count in the other file: the defaults for it are read later.
    write(client(), new File(folder, "hdfs-site.xml"));
  }

  static void write(Configuration keys, File file) throws IOException {
    try (OutputStream out = new FileOutputStream(file)) {
      keys.writeXml(out);
    }
  }

  /** Makes a folder, erasure coded or not. */
  void folder(String path, boolean coded) throws IOException {
    roles.fs().mkdirs(new Path(path));
    if (coded) {
      roles.fs().setErasureCodingPolicy(new Path(path), POLICY);
    }
  }

  /** Kills the NameNode and starts it again. */
  void restartNameNode() throws Exception {
    roles.killNameNode();
    roles.startNameNode();
    roles.waitReady(NODES);
  }

  /** Has a DataNode killed until {@code meanwhile} is over. */
  void withoutDataNode(int i, Runner.Body meanwhile) throws Throwable {
    roles.killDataNode(i);
    try {
      meanwhile.run();
    } finally {
      roles.startDataNode(i);
      Load.await("DataNode " + i + " is back", () -> roles.fs().getDataNodeStats(DatanodeReportType.LIVE).length == NODES);
    }
  }

  /** Waits until every block has all its replicas or units. */
  void checkHealth() throws Exception {
    Load.await("all blocks are whole", () -> {
      var fs = roles.fs();
      return fs.getMissingBlocksCount() + fs.getLowRedundancyBlocksCount() + fs.getCorruptBlocksCount() == 0;
    });
  }

  /** Paths below {@code root} that somebody writes to. */
  List<String> open(String root) throws IOException {
    List<String> open = new ArrayList<>();
    var all = roles.fs().listOpenFiles(EnumSet.of(OpenFilesType.ALL_OPEN_FILES), root + "/");
    while (all.hasNext()) {
      open.add(all.next().getFilePath());
    }
    return open;
  }

  /** All files below {@code root} are erasure coded, or none is, and there is one. */
  void checkCoded(String root, boolean coded) throws IOException {
    var files = roles.fs().listFiles(new Path(root), true);
    Runner.check(files.hasNext(), "there is no file below " + root);
    while (files.hasNext()) {
      Path file = files.next().getPath();
      Runner.equal(coded, roles.fs().getErasureCodingPolicy(file) != null, "erasure coding of " + file);
    }
  }

  /** A DataNode to which a file below {@code root} is being written. */
  int writtenTo(String root) throws IOException {
    for (String path : open(root)) {
      LocatedBlocks blocks = roles.fs().getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE);
      LocatedBlock last = blocks.getLastLocatedBlock();
      if (last != null && !blocks.isLastBlockComplete() && last.getLocations().length > 0) {
        return roles.indexOf(last.getLocations()[0]);
      }
    }
    throw new AssertionError("nothing is being written below " + root + "; open are " + open(root));
  }

  /** The DataNode that holds most blocks of files below {@code root}. */
  int holds(String root) throws IOException {
    int[] count = new int[NODES];
    var files = roles.fs().listFiles(new Path(root), true);
    while (files.hasNext()) {
      String path = files.next().getPath().toUri().getPath();
      for (LocatedBlock block : roles.fs().getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).getLocatedBlocks()) {
        Arrays.stream(block.getLocations()).forEach(n -> count[roles.indexOf(n)]++);
      }
    }
    int most = 0;
    for (int i = 0; i < NODES; i++) {
      most = count[i] > count[most] ? i : most;
    }
    return most;
  }

  @Override
  public void close() throws Exception {
    zooKeeper.close();
    if (roles != null) {
      roles.close();
    }
  }

  static void main(String[] args, Group group) throws Exception {
    Suite suite = new Suite(args, "--tests", "cairn-stores");
    // Hadoop's servers are started with the class path of this process, and a store has not all that they need.
    System.setProperty("java.class.path", System.getProperty("stores.hadoop"));
    Roles roles = roles(suite.target(), suite.work());
    try (Stores stores = new Stores(suite.runner(), suite.work(), roles, null, suite.has("--full"))) {
      group.run(stores);
    }
    suite.end();
  }
}
