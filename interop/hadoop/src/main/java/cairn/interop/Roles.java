package cairn.interop;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;

/** A NameNode and DataNodes, each a process of its own on fixed ports, so that signals hit one of them alone. */
final class Roles implements AutoCloseable {
  private final Target target;
  private final File data;
  private final File conf;
  private final int rpcPort = Ports.free();
  private final int httpPort = Ports.free();
  private final Map<String, String> keys;
  private final List<int[]> ports = new ArrayList<>();
  private final List<Process> nodes = new ArrayList<>();
  private Process nameNode;

  Roles(Target target, File data, int count, Map<String, String> keys) throws Exception {
    this(target, data, count, keys, Map.of());
  }

  /** With {@code policy}, if there is something in it, in the file of the access lists of services. */
  Roles(
      Target target, File data, int count, Map<String, String> keys, Map<String, String> policy)
      throws Exception {
    this.target = target;
    this.data = data;
    this.keys = keys;
    conf = new File(data, "conf");
    conf.mkdirs();
    writeSite(Map.of());
    if (!policy.isEmpty()) {
      writePolicy(policy);
    }
    startNameNode();
    for (int i = 0; i < count; i++) {
      ports.add(
          new int[] {
            Ports.free(), Ports.free(), Ports.free()
          });
      nodes.add(null);
    }
    startAllDataNodes();
  }

  /** Writes the files of keys that every role has read, with {@code own} beside the keys of all tests. */
  void writeSite(Map<String, String> own) throws IOException {
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", "hdfs://127.0.0.1:" + rpcPort);
    Configuration hdfs = new Configuration(false);
    keys.forEach(hdfs::set);
    own.forEach(hdfs::set);
    hdfs.set("dfs.namenode.rpc-address", "127.0.0.1:" + rpcPort);
    hdfs.set("dfs.namenode.http-address", "127.0.0.1:" + httpPort);
    try (OutputStream a = new FileOutputStream(new File(conf, "core-site.xml"));
        OutputStream b = new FileOutputStream(new File(conf, "hdfs-site.xml"))) {
      core.writeXml(a);
      hdfs.writeXml(b);
    }
  }

  /** Writes the file of the access lists of services, beside the others. */
  void writePolicy(Map<String, String> policy) throws IOException {
    Configuration own = new Configuration(false);
    policy.forEach(own::set);
    try (OutputStream out = new FileOutputStream(new File(conf, "hadoop-policy.xml"))) {
      own.writeXml(out);
    }
  }

  private Process launch(String role, String name, Map<String, String> own) throws Exception {
    List<String> args = new ArrayList<>(List.of(role, "--conf", conf.getPath()));
    args.addAll(List.of("--data", new File(data, name).getPath()));
    own.forEach((k, v) -> args.addAll(List.of("-D", k + "=" + v)));
    return target.launch(args, log(name));
  }

  private static void waitForLine(Process p, File log) throws IOException {
    BufferedReader in = p.inputReader(StandardCharsets.UTF_8);
    if (in.readLine() == null) {
      throw new IOException("the process ended before it served; see " + log);
    }
  }

  File log(String name) {
    return new File(data, name + ".log");
  }

  void startNameNode() throws Exception {
    nameNode = launch("namenode", "name", Map.of());
    waitForLine(nameNode, log("name"));
    // A connection from before a restart may be known to this process: the call that finds it broken is this one.
    Target.isStarting(fs());
  }

  private void launchDataNode(int i) throws Exception {
    int[] p = ports.get(i);
    Map<String, String> own = new HashMap<>();
    own.put("dfs.datanode.address", "127.0.0.1:" + p[0]);
    own.put("dfs.datanode.ipc.address", "127.0.0.1:" + p[1]);
    own.put("dfs.datanode.http.address", "127.0.0.1:" + p[2]);
    nodes.set(i, launch("datanode", "dn" + i, own));
  }

  /** Starts DataNode {@code i} and waits until it serves. */
  void startDataNode(int i) throws Exception {
    launchDataNode(i);
    waitForLine(nodes.get(i), log("dn" + i));
  }

  void startAllDataNodes() throws Exception {
    for (int i = 0; i < nodes.size(); i++) {
      launchDataNode(i);
    }
    for (int i = 0; i < nodes.size(); i++) {
      waitForLine(nodes.get(i), log("dn" + i));
    }
    waitReady(nodes.size());
  }

  /** Waits until the NameNode has left safe mode and counts {@code live} DataNodes. */
  void waitReady(int live) throws Exception {
    Target.waitForLive(fs(), live);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (Target.isStarting(fs())) {
      if (System.nanoTime() > end) {
        throw new IOException("the NameNode does not leave safe mode");
      }
      Thread.sleep(50);
    }
  }

  void killNameNode() throws Exception {
    nameNode.destroyForcibly().waitFor();
  }

  /** Has the NameNode stop as it should. */
  void stopNameNode() throws Exception {
    nameNode.destroy();
    nameNode.waitFor();
  }

  /** Sends SIGKILL to DataNode {@code i}. */
  void killDataNode(int i) throws Exception {
    nodes.get(i).destroyForcibly().waitFor();
  }

  /** Sends {@code signal}, such as {@code STOP}, to DataNode {@code i}. */
  void signalDataNode(int i, String signal) throws Exception {
    String pid = Long.toString(nodes.get(i).pid());
    int code = new ProcessBuilder("kill", "-" + signal, pid).inheritIO().start().waitFor();
    Runner.equal(0, code, "kill -" + signal);
  }

  /** Ends every process by SIGKILL. */
  void killAll() throws Exception {
    FileSystem.closeAll();
    nameNode.destroyForcibly();
    nodes.forEach(Process::destroyForcibly);
    nameNode.waitFor();
    for (Process p : nodes) {
      p.waitFor();
    }
  }

  /** Asks every process to stop by SIGTERM and returns how many did not end within ten seconds. */
  int terminateAll() throws Exception {
    FileSystem.closeAll();
    int late = 0;
    List<Process> all = new ArrayList<>(nodes);
    all.add(nameNode);
    all.forEach(Process::destroy);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    for (Process p : all) {
      if (!p.waitFor(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)) {
        late++;
        p.destroyForcibly().waitFor();
      }
    }
    return late;
  }

  /** The index of the process that is {@code node}. */
  int indexOf(DatanodeInfo node) {
    for (int i = 0; i < ports.size(); i++) {
      if (ports.get(i)[0] == node.getXferPort()) {
        return i;
      }
    }
    throw new AssertionError("no process listens on " + node.getXferAddr());
  }

  /** Whether the process of DataNode {@code i} has not ended. */
  boolean isRunning(int i) {
    return nodes.get(i).isAlive();
  }

  /** The folder of DataNode {@code i}. */
  File folder(int i) {
    return new File(data, "dn" + i);
  }

  int live() throws IOException {
    return fs().getDataNodeStats(DatanodeReportType.LIVE).length;
  }

  /** The ports of DataNode {@code i}: data transfer, RPC and HTTP. */
  int[] ports(int i) {
    return ports.get(i);
  }

  int rpcPort() {
    return rpcPort;
  }

  int httpPort() {
    return httpPort;
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

  @Override
  public void close() throws Exception {
    for (Process p : nodes) {
      // A stopped process would not see a gentler signal.
      p.destroyForcibly();
    }
    killAll();
  }
}
