package cairn.interop.storm;

import cairn.interop.Ports;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;

/**
 * One NameNode or several and DataNodes, each a process; and, with the right to have them, a network of its own for each and
 * small volumes in memory. Only one thread changes it.
 */
final class Cluster {
  static final int NODES = 12;
  static final int RACKS = 4;

  /** The place of a DataNode that is started on a copy of another one's disks. */
  static final int CLONE = NODES;

  static final int BLOCK = 256 * 1024;
  private static final int VOLUMES = 2;
  private static final String VOLUME_SIZE = "96m";
  private static final String NAME_SIZE = "192m";

  /** The name of several NameNodes. */
  private static final String SERVICE = "storm";

  private static final String NETWORK = "10.77.0.";

  /** A machine with a DataNode. */
  final class Node extends Machine {
    final int index;
    private final int[] ports;
    final List<File> volumes = new ArrayList<>();

    private Node(int index) throws IOException {
      super(index == CLONE ? "clone" : "dn" + index, isolated ? NETWORK + (10 + index) : "127.0.0.1");
      this.index = index;
      ports =
          isolated
              ? new int[] {9866, 9867, 9864}
              : new int[] {Ports.free(), Ports.free(), Ports.free()};
    }

    int port() {
      return ports[0];
    }

    @Override
    void start() throws IOException {
      List<String> command = command(this, "datanode");
      volumes.forEach(v -> command.addAll(List.of("--data", v.getPath())));
      String[] keys = {"dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"};
      for (int i = 0; i < keys.length; i++) {
        command.addAll(List.of("-D", keys[i] + "=" + address + ":" + ports[i]));
      }
      started(launch(command, name));
    }
  }

  /** A machine with a NameNode. */
  final class NameNode extends Machine {
    final File folder;
    private final int rpcPort = isolated ? 8020 : Ports.free();
    private final int httpPort = isolated ? 9870 : Ports.free();
    private final int quorumPort = isolated ? 8021 : Ports.free();

    private NameNode(int index) throws IOException {
      super("nn" + index, isolated ? NETWORK + (2 + index) : "127.0.0.1");
      folder = new File(work, name);
    }

    @Override
    void start() throws IOException {
      started(launch(words(), name));
    }

    private List<String> words() {
      List<String> command = command(this, "namenode");
      command.addAll(List.of("--data", folder.getPath()));
      if (isQuorum()) {
        command.addAll(List.of("-D", "dfs.ha.namenode.id=" + name));
      }
      return command;
    }

    /** Makes the file system of a quorum. */
    private void found() throws Exception {
      List<String> command = words();
      command.add("--found-quorum");
      run(command.toArray(String[]::new));
    }

    private void addKeys(Map<String, String> keys) {
      String suffix = isQuorum() ? "." + SERVICE + "." + name : "";
      keys.put("dfs.namenode.rpc-address" + suffix, address + ":" + rpcPort);
      keys.put("dfs.namenode.http-address" + suffix, address + ":" + httpPort);
      if (isQuorum()) {
        keys.put("cairn.quorum.address" + suffix, address + ":" + quorumPort);
      }
    }
  }

  final boolean isolated;
  final File work;
  final File conf;
  final List<Node> nodes = new ArrayList<>();
  final List<NameNode> nameNodes = new ArrayList<>();
  private final File cairn;
  private final File hosts;

  Cluster(File cairn, File work, boolean isolated, int nameNodes) throws Exception {
    this.cairn = cairn;
    this.work = work;
    this.isolated = isolated;
    conf = new File(work, "conf");
    conf.mkdirs();
    hosts = new File(conf, "hosts.json");
    for (int i = 0; i < nameNodes; i++) {
      this.nameNodes.add(new NameNode(i));
    }
    for (int i = 0; i <= NODES; i++) {
      nodes.add(new Node(i));
    }
    if (isolated) {
      layNetwork();
    }
    for (Node node : nodes) {
      for (int v = 0; v < VOLUMES; v++) {
        File volume = new File(work, node + "/v" + v);
        volume.mkdirs();
        if (isolated) {
          run("mount", "-t", "tmpfs", "-o", "size=" + VOLUME_SIZE, "storm", volume.getPath());
        }
        node.volumes.add(volume);
      }
    }
    for (NameNode name : this.nameNodes) {
      name.folder.mkdirs();
      if (isolated) {
        run("mount", "-t", "tmpfs", "-o", "size=" + NAME_SIZE, "storm", name.folder.getPath());
      }
    }
    writeKeys();
    setLeaving(Set.of());
    if (isQuorum()) {
      this.nameNodes.get(0).found();
    }
    for (NameNode name : this.nameNodes) {
      name.start();
    }
    for (Node node : nodes.subList(0, NODES)) {
      node.start();
    }
  }

  List<Machine> machines() {
    List<Machine> all = new ArrayList<>(nodes);
    all.addAll(nameNodes);
    return all;
  }

  boolean isQuorum() {
    return nameNodes.size() > 1;
  }

  /** A network namespace for each machine, all on one bridge. */
  private void layNetwork() throws Exception {
    StringBuilder script = new StringBuilder("set -e\nmount -t tmpfs storm /run\nip -batch - <<END\n");
    script.append("link set lo up\nlink add storm type bridge\n");
    script.append("addr add ").append(NETWORK).append("1/24 dev storm\nlink set storm up\n");
    for (Machine m : machines()) {
      script.append("netns add %s\nlink add %s type veth peer name eth0 netns %s\n".formatted(m, m.cable(), m));
      script.append("link set %s master storm up\n".formatted(m.cable()));
    }
    script.append("END\n");
    for (Machine n : machines()) {
      script.append("ip -n %s -batch - <<END\naddr add %s/24 dev eth0\n".formatted(n, n.address));
      script.append("link set eth0 up\nlink set lo up\nEND\n");
    }
    run("sh", "-c", script.toString());
  }

  private void writeKeys() throws IOException {
    StringBuilder racks = new StringBuilder();
    for (Node n : nodes) {
      racks.append(n.address).append(" /rack").append(n.index % RACKS).append('\n');
    }
    File table = new File(conf, "racks");
    Files.writeString(table.toPath(), racks);
    Map<String, String> keys = new LinkedHashMap<>();
    if (isQuorum()) {
      File secret = new File(conf, "quorum.key");
      Files.writeString(secret.toPath(), "what all members of this quorum have");
      keys.put("cairn.quorum.key-file", secret.getPath());
      keys.put("dfs.nameservices", SERVICE);
      keys.put("dfs.ha.namenodes." + SERVICE, String.join(",", nameNodes.stream().map(n -> n.name).toList()));
      keys.put(
          "dfs.client.failover.proxy.provider." + SERVICE,
          "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
    }
    nameNodes.forEach(n -> n.addKeys(keys));
    keys.put("dfs.namenode.datanode.registration.ip-hostname-check", "false");
    keys.put(
        "dfs.namenode.hosts.provider.classname",
        "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager");
    keys.put("dfs.hosts", hosts.getPath());
    if (isolated) {
      keys.put("net.topology.node.switch.mapping.impl", "org.apache.hadoop.net.TableMapping");
      keys.put("net.topology.table.file.name", table.getPath());
    }
    keys.put("dfs.blocksize", "" + BLOCK);
    keys.put("dfs.namenode.fs-limits.min-block-size", "65536");
    // A minute is to show what takes hours in life.
    keys.put("dfs.heartbeat.interval", "1");
    keys.put("dfs.namenode.heartbeat.recheck-interval", "2000");
    keys.put("dfs.namenode.stale.datanode.interval", "5000");
    keys.put("dfs.blockreport.intervalMsec", "20000");
    keys.put("dfs.datanode.directoryscan.interval", "15");
    keys.put("dfs.block.scanner.volume.bytes.per.second", "8388608");
    keys.put("dfs.namenode.reconstruction.pending.timeout-sec", "10");
    keys.put("dfs.namenode.redundancy.interval.seconds", "1");
    keys.put("dfs.namenode.decommission.interval", "1");
    keys.put("dfs.namenode.safemode.extension", "0");
    keys.put("dfs.namenode.lease-recheck-interval-ms", "1000");
    keys.put("dfs.namenode.resource.du.reserved", "1048576");
    keys.put("dfs.namenode.redundancy.considerLoad", "false");
    keys.put("dfs.datanode.failed.volumes.tolerated", "1");
    keys.put("dfs.balancer.getBlocks.min-block-size", "1");
    keys.put("dfs.balancer.max-no-move-interval", "3000");
    keys.put("dfs.balancer.block-move.timeout", "20000");
    keys.put("dfs.balancer.movedWinWidth", "1000");
    // Of clients.
    keys.put("dfs.client.socket-timeout", "10000");
    keys.put("dfs.client.retry.window.base", "100");
    keys.put("dfs.client.block.write.locateFollowingBlock.retries", "7");
    keys.put("dfs.datanode.socket.write.timeout", "10000");
    keys.put("ipc.client.connect.timeout", "3000");
    keys.put("ipc.client.connect.max.retries", "6");
    keys.put("ipc.client.connect.retry.interval", "500");
    Configuration hdfs = new Configuration(false);
    keys.forEach(hdfs::set);
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", uri());
    try (OutputStream a = new FileOutputStream(new File(conf, "core-site.xml"));
        OutputStream b = new FileOutputStream(new File(conf, "hdfs-site.xml"))) {
      core.writeXml(a);
      hdfs.writeXml(b);
    }
  }

  /** Has the lists of hosts say which DataNodes are to leave; the NameNode reads them when it is told to. */
  void setLeaving(Set<Integer> leaving) throws IOException {
    List<String> entries = new ArrayList<>();
    for (Node n : nodes) {
      String state = leaving.contains(n.index) ? ", \"adminState\": \"DECOMMISSIONED\"" : "";
      entries.add("{\"hostName\": \"%s\", \"port\": %d%s}".formatted(n.address, n.port(), state));
    }
    Files.writeString(hosts.toPath(), "[" + String.join(",\n", entries) + "]\n");
  }

  private Process launch(List<String> command, String log) throws IOException {
    File file = new File(work, log + ".log");
    String line = "--- " + Storm.elapsed() + " " + String.join(" ", command) + "\n";
    try (OutputStream out = new FileOutputStream(file, true)) {
      out.write(line.getBytes(StandardCharsets.UTF_8));
    }
    return new ProcessBuilder(command)
        .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
        .redirectOutput(ProcessBuilder.Redirect.appendTo(file))
        .redirectError(ProcessBuilder.Redirect.appendTo(file))
        .start();
  }

  /** When the NameNodes, or one of several, were last started or could last not be heard, by {@link System#nanoTime}. */
  long namesDisturbed() {
    return nameNodes.stream().mapToLong(n -> n.disturbed).max().orElseThrow();
  }

  /** The beginning of the command that starts a server. */
  private List<String> command(Machine machine, String server) {
    List<String> command = new ArrayList<>();
    if (isolated) {
      command.addAll(List.of("nsenter", "--net=/run/netns/" + machine));
    }
    command.addAll(List.of(cairn.getPath(), server, "--conf", conf.getPath()));
    return command;
  }

  /** Starts a command of the program beside the cluster; what it prints goes to {@code log}. */
  Process command(String log, String... args) throws IOException {
    List<String> command = new ArrayList<>(List.of(cairn.getPath(), "--conf", conf.getPath()));
    command.addAll(List.of(args));
    return launch(command, log);
  }

  /** Runs a command of the program and returns what it prints; null if it has not ended after so many seconds. */
  String output(int seconds, String... args) throws Exception {
    File out = File.createTempFile("command", ".txt", work);
    List<String> command = new ArrayList<>(List.of(cairn.getPath(), "--conf", conf.getPath()));
    command.addAll(List.of(args));
    Process p =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(out)
            .start();
    try {
      if (!p.waitFor(seconds, TimeUnit.SECONDS)) {
        return null;
      }
      return Files.readString(out.toPath()) + "exit status " + p.exitValue() + "\n";
    } finally {
      p.destroyForcibly();
      out.delete();
    }
  }

  String uri() {
    return "hdfs://" + (isQuorum() ? SERVICE : nameNodes.get(0).address + ":" + nameNodes.get(0).rpcPort);
  }

  /** The place of a DataNode; -1 for one that is not of the storm. */
  int indexOf(DatanodeInfo info) {
    for (Node n : nodes) {
      if (n.address.equals(info.getIpAddr()) && n.port() == info.getXferPort()) {
        return n.index;
      }
    }
    return -1;
  }

  /** A client of its own, with connections that no other one shares where Hadoop lets it. */
  DistributedFileSystem connect() throws IOException {
    Configuration c = new HdfsConfiguration();
    c.addResource(new Path(conf.getPath(), "core-site.xml"));
    c.addResource(new Path(conf.getPath(), "hdfs-site.xml"));
    return (DistributedFileSystem) FileSystem.newInstance(c);
  }

  static void signal(Process process, String name) throws Exception {
    run("kill", "-" + name, Long.toString(process.pid()));
  }

  /** Runs a command of the system to its end, which must be a good one. */
  static void run(String... command) throws Exception {
    Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
    p.getOutputStream().close();
    String said = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (p.waitFor() != 0) {
      throw new IOException(String.join(" ", command) + ": " + said.trim());
    }
  }

  /** Ends all processes. */
  void end() throws Exception {
    for (Machine m : machines()) {
      m.kill();
    }
  }
}
