package cairn.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.tools.DFSAdmin;

/**
 * One NameNode, of Cairn or of Hadoop, with DataNodes of both: Cairn's in a process each, Hadoop's together in one.
 */
final class Mixed implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A DataNode, by the folder of its volume. */
  static final class Node {
    final String name;
    final File folder;
    boolean byCairn;
    /** Its port of data transfer; 0 when it does not run. */
    int port;
    /** When it was started, in milliseconds of the clock. */
    private long started;
    private Process process;
    private BufferedReader out;
    /** Its number in its process. */
    private int index;

    Node(String name, File folder) {
      this.name = name;
      this.folder = folder;
    }

    @Override
    public String toString() {
      return name + (byCairn ? " (Cairn)" : " (Hadoop)");
    }
  }

  private final Target cairn;
  private final Target hadoop = new Target(null);
  private final File data;
  private final File conf;
  private final int httpPort = Ports.free();
  private final int rpcPort = Ports.free();
  private final Map<String, String> keys;
  private final Process nameNode;
  private final List<Process> processes = new ArrayList<>();
  final List<Node> nodes = new ArrayList<>();

  Mixed(boolean nameNodeByCairn, File binary, File data, int ofEach, Map<String, String> keys)
      throws Exception {
    this.cairn = new Target(binary);
    this.data = data;
    conf = new File(data, "conf");
    conf.mkdirs();
    this.keys = new HashMap<>(keys);
    writeSite();
    Target target = nameNodeByCairn ? cairn : hadoop;
    List<String> args = new ArrayList<>(List.of("namenode", "--conf", conf.getPath()));
    args.addAll(List.of("--data", new File(data, "name").getPath()));
    nameNode = target.launch(args, log("name"));
    processes.add(nameNode);
    line(nameNode.inputReader(StandardCharsets.UTF_8), "the NameNode");
    List<Node> byHadoop = new ArrayList<>();
    for (int i = 0; i < ofEach; i++) {
      nodes.add(node("c" + i));
      byHadoop.add(node("h" + i));
    }
    startHadoop(byHadoop);
    for (Node node : nodes) {
      startCairn(node);
    }
    nodes.addAll(byHadoop);
    awaitReports();
  }

  private Node node(String name) {
    return new Node(name, new File(data, name));
  }

  private void writeSite() throws IOException {
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", "hdfs://127.0.0.1:" + rpcPort);
    Configuration hdfs = new Configuration(false);
    keys.forEach(hdfs::set);
    hdfs.set("dfs.namenode.rpc-address", "127.0.0.1:" + rpcPort);
    hdfs.set("dfs.namenode.http-address", "127.0.0.1:" + httpPort);
    hdfs.set("dfs.namenode.datanode.registration.ip-hostname-check", "false");
    try (OutputStream a = new FileOutputStream(new File(conf, "core-site.xml"));
        OutputStream b = new FileOutputStream(new File(conf, "hdfs-site.xml"))) {
      core.writeXml(a);
      hdfs.writeXml(b);
    }
  }

  /** Changes a key of the NameNode while it runs. */
  void reconfigure(String key, String value) throws Exception {
    keys.put(key, value);
    writeSite();
    String[] words = {"-reconfig", "namenode", "127.0.0.1:" + rpcPort, "start"};
    Runner.equal(0, new DFSAdmin(conf()).run(words), "status of " + String.join(" ", words));
  }

  private File log(String name) {
    return new File(data, name + ".log");
  }

  private static JsonNode line(BufferedReader out, String who) throws IOException {
    String line = out.readLine();
    if (line == null) {
      throw new IOException(who + " ended without an answer");
    }
    return JSON.readTree(line);
  }

  private static int port(String address) {
    return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
  }

  /** Starts a DataNode of Cairn on the folder of {@code node}. */
  void startCairn(Node node) throws Exception {
    startCairn(node, Map.of());
  }

  /** The same with keys of its own. */
  void startCairn(Node node, Map<String, String> own) throws Exception {
    List<String> args = new ArrayList<>(List.of("datanode", "--conf", conf.getPath()));
    args.addAll(List.of("--data", node.folder.getPath()));
    node.port = Ports.free();
    node.started = System.currentTimeMillis();
    args.addAll(List.of("-D", "dfs.datanode.address=127.0.0.1:" + node.port));
    for (String key : List.of("dfs.datanode.ipc.address", "dfs.datanode.http.address")) {
      args.addAll(List.of("-D", key + "=127.0.0.1:" + Ports.free()));
    }
    own.forEach((key, value) -> args.addAll(List.of("-D", key + "=" + value)));
    node.process = cairn.launch(args, log(node.name));
    processes.add(node.process);
    node.byCairn = true;
    line(node.process.inputReader(StandardCharsets.UTF_8), node.name);
  }

  /** Starts DataNodes of Hadoop on the folders of {@code some}, in one process. */
  void startHadoop(List<Node> some) throws Exception {
    some.forEach(node -> node.started = System.currentTimeMillis());
    String folders = String.join(",", some.stream().map(n -> n.folder.getPath()).toList());
    Process process =
        hadoop.launch(List.of("datanodes", "--conf", conf.getPath(), "--data", folders), log("hadoop"));
    processes.add(process);
    BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
    JsonNode described = line(out, "the process of Hadoop's DataNodes").path("datanodes");
    for (Node node : some) {
      node.process = process;
      node.out = out;
      node.byCairn = false;
      node.index = some.indexOf(node);
      node.port = port(described.path(node.index).path("xfer").asText());
    }
  }

  private JsonNode command(Node node, String words) throws Exception {
    OutputStream in = node.process.getOutputStream();
    in.write((words + "\n").getBytes(StandardCharsets.UTF_8));
    in.flush();
    JsonNode answer = line(node.out, node.name);
    if (!answer.path("ok").asBoolean()) {
      throw new IOException(words + ": " + answer);
    }
    return answer;
  }

  /** Has a DataNode of Hadoop call another one slow, which it names by the address of its pages. */
  void callSlow(Node node, String infoAddress) throws Exception {
    command(node, "call-slow " + node.index + " " + infoAddress);
  }

  /** The bean of that name of the NameNode. */
  JsonNode bean(String name) throws IOException {
    return bean("127.0.0.1:" + httpPort, "Hadoop:service=NameNode,name=" + name);
  }

  /** The bean of that name of the NameNode whose pages are there. */
  static JsonNode bean(String address, String name) throws IOException {
    return JSON.readTree(new URL("http://" + address + "/jmx?qry=" + name)).path("beans").path(0);
  }

  /** Ends a DataNode without a word to the NameNode. */
  void kill(Node node) throws Exception {
    if (node.byCairn) {
      node.process.destroyForcibly().waitFor();
    } else {
      command(node, "kill-datanode " + node.index);
    }
    node.port = 0;
  }

  /** Waits until the NameNode knows every running DataNode at its present port, and what it holds. */
  void awaitReports() throws Exception {
    long end = System.nanoTime() + 60_000_000_000L;
    Set<Integer> missing = new HashSet<>();
    do {
      running().forEach(n -> missing.add(n.port));
      for (DatanodeInfo info : fs().getDataNodeStats(DatanodeReportType.LIVE)) {
        Node node = nodeOf(info);
        // One that has gone may still count as live.
        if (node != null && info.getLastBlockReportTime() >= node.started) {
          missing.remove(node.port);
        }
      }
      Runner.check(System.nanoTime() < end, "no reports from the ports " + missing);
      Thread.sleep(50);
    } while (!missing.isEmpty());
  }

  List<Node> running() {
    return nodes.stream().filter(n -> n.port != 0).toList();
  }

  /** Block groups that Hadoop's DataNodes were told to rebuild units of. */
  long reconstructionsByHadoop() throws Exception {
    Map<Process, Long> counts = new HashMap<>();
    for (Node node : nodes) {
      if (!node.byCairn && !counts.containsKey(node.process)) {
        counts.put(node.process, command(node, "reconstructions").path("count").asLong());
      }
    }
    return counts.values().stream().mapToLong(Long::longValue).sum();
  }

  Node nodeOf(DatanodeInfo info) {
    for (Node node : nodes) {
      if (node.port == info.getXferPort()) {
        return node;
      }
    }
    return null;
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

  /** Keys with which a dead DataNode is noticed after eleven seconds. */
  static Map<String, String> hasty(Map<String, String> keys) {
    Map<String, String> hasty = new HashMap<>(keys);
    hasty.put("dfs.namenode.heartbeat.recheck-interval", "500");
    hasty.put("dfs.namenode.reconstruction.pending.timeout-sec", "10");
    hasty.put("dfs.client.block.write.replace-datanode-on-failure.best-effort", "true");
    return hasty;
  }

  @Override
  public void close() throws Exception {
    FileSystem.closeAll();
    for (Process p : processes) {
      p.destroyForcibly();
    }
    for (Process p : processes) {
      p.waitFor();
    }
  }
}
