package cairn.interop;

import static cairn.interop.Runner.await;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.Block;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;

/**
 * What {@code hdfs fsck}, {@code dfsadmin -metasave} and {@code dfsadmin -report} say of a cluster that has lost units,
 * compared with what Hadoop printed: one test for each part of {@code cases/fsck/*.txt}. A cluster of its own for each
 * file of cases; the name says over how many racks ({@code racks3.txt}). Nothing is mended meanwhile.
 *
 * <pre>
 * settle PATH N                    waits until each block of PATH has N places
 * lose PATH BLOCK UNIT...          deletes units (replicas by their place in the list) of block BLOCK from the disks
 * lone PATH BLOCK                  loses the one unit that is alone in its rack
 * corrupt PATH BLOCK UNIT...       tells the NameNode that units are bad
 * kill PATH BLOCK UNIT, revive     stops the DataNode of a unit until it counts as dead; starts all such again
 * stale PATH BLOCK UNIT, fresh     stops the DataNode of a unit until it counts as stale; starts all such again
 * send PATH BLOCK UNIT STATE UNTIL  has the DataNode of a unit (a replica by its place among those that stay) become DECOMMISSIONED or IN_MAINTENANCE; waits until it is UNTIL
 * home                             has all DataNodes serve again
 * domains N                        gives all DataNodes upgrade domains, in turn one of N
 * hold PATH LENGTH, release        writes a file and leaves it open; closes all such
 * same ARGS                        compares cairn fsck with hdfs fsck, its text and its exit status
 * figures                          the figures of blocks in dfsadmin -report
 * metasave                         dfsadmin -metasave, and the file that it wrote
 * </pre>
 *
 * {@code block:PATH#BLOCK} in the arguments of {@code fsck} stands for the name of that block, with {@code +UNIT} for
 * that of a unit of it. Empty lines of {@code fsck} are shown as {@code _}. In files whose names begin with
 * {@code mended}, what is lost is mended.
 */
final class FsckTests implements Transcript.Tools {
  private static final Pattern LIST = Pattern.compile("\\[((?:BLK|Datanode|/).*)\\]");

  /** What the cases put into directories; only Hadoop's default policy is enabled from the start. */
  private static final String POLICY = "RS-3-2-1024k";

  /** The least that a heartbeat of a second allows. */
  private static final long STALE_MS = 3000;

  private final ClusterProcess cluster;
  private final Configuration conf;
  private final boolean hadoop;
  private final File cairn;
  private final File hosts;
  private final Map<Integer, String> states = new HashMap<>();
  private final List<Integer> killed = new ArrayList<>();
  private final List<Integer> silent = new ArrayList<>();
  private int domains;
  private final List<FSDataOutputStream> held = new ArrayList<>();

  private FsckTests(Main.Context x, ClusterProcess cluster, File hosts) {
    this.hosts = hosts;
    this.cluster = cluster;
    this.hadoop = x.target().isHadoop();
    this.cairn = x.cairn();
    conf = cluster.conf();
    conf.set("dfs.namenode.http-address", cluster.httpAddress());
  }

  static void run(Main.Context x) throws Exception {
    File[] files = new File(x.home(), "hadoop/cases/fsck").listFiles((d, n) -> n.endsWith(".txt"));
    Arrays.sort(files);
    for (File file : files) {
      Transcript t = new Transcript(file);
      if (t.cases.stream().anyMatch(c -> x.runner().wants(name(file, c)))) {
        run(x, file, t);
      }
    }
  }

  private static void run(Main.Context x, File file, Transcript t) throws Exception {
    boolean racks = file.getName().startsWith("racks3");
    Map<String, String> keys = new HashMap<>(x.keys());
    // What is lost stays lost, so that both sides tell of the same.
    if (!file.getName().startsWith("mended")) {
      keys.put("dfs.namenode.redundancy.interval.seconds", "3600");
    }
    // A silent DataNode is to be stale for a while, or dead soon.
    boolean stale = file.getName().startsWith("standing");
    keys.put("dfs.namenode.heartbeat.recheck-interval", stale ? "60000" : "500");
    keys.put("dfs.namenode.stale.datanode.interval", "" + STALE_MS);
    // A Hadoop DataNode would believe its list of replicas of before it stopped.
    keys.put("dfs.datanode.replica.cache.expiry.time", "1ms");
    File hosts = new File(x.work(), file.getName() + ".hosts");
    keys.put(
        "dfs.namenode.hosts.provider.classname",
        "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager");
    keys.put("dfs.hosts", hosts.getPath());
    keys.put("dfs.namenode.decommission.interval", "1");
    Files.writeString(hosts.toPath(), "");
    try (ClusterProcess cluster =
        new ClusterProcess(
            x.target(), new File(x.work(), file.getName()), racks ? 6 : 7, racks ? 3 : 1, keys)) {
      FsckTests tools = new FsckTests(x, cluster, hosts);
      // Each case may be the only one that is run.
      tools.fs().enableErasureCodingPolicy(POLICY);
      for (Transcript.Case c : t.cases) {
        File local = new File(x.work(), "local/" + name(file, c).replace(' ', '-'));
        x.runner()
            .test(
                name(file, c),
                () -> Transcript.run(c, x.target(), tools.conf, local, x.record(), Map.of(), tools));
      }
      if (x.record()) {
        t.save();
      }
    }
  }

  private static String name(File file, Transcript.Case c) {
    return "fsck/" + file.getName().replace(".txt", "") + "/" + c.name;
  }

  private DistributedFileSystem fs() throws IOException {
    return (DistributedFileSystem) org.apache.hadoop.fs.FileSystem.get(conf);
  }

  @Override
  public Shell.Result run(String tool, String user, String[] args, byte[] stdin) throws Exception {
    switch (tool) {
      case "fsck" -> {
        expand(args);
        Shell.Result r = Shell.run(conf, user, tool, args, new byte[0]);
        String out = new String(plain(r.text()), StandardCharsets.UTF_8);
        // The last replica decides on the code, and those of replicated blocks are in no order.
        boolean inOrder =
            out.contains("No. of redundant Replica")
                || out.lines()
                    .filter(line -> line.startsWith("Block replica on"))
                    .map(line -> line.replaceFirst(".* is ", ""))
                    .distinct()
                    .count()
                < 2;
        return new Shell.Result(
            inOrder ? r.code() : 0,
            out.replaceAll("(?m)^$", "_").getBytes(StandardCharsets.UTF_8),
            new String(plain(r.err()), StandardCharsets.UTF_8));
      }
      case "same" -> same(args);
      case "settle" -> settle(args[0], Integer.parseInt(args[1]));
      case "lose" -> lose(located(args[0], Integer.parseInt(args[1])), args[0], rest(args));
      case "lone" -> lone(args[0], Integer.parseInt(args[1]));
      case "corrupt" -> corrupt(located(args[0], Integer.parseInt(args[1])), rest(args));
      case "kill" -> kill(args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2]));
      case "revive" -> revive();
      case "stale" -> stale(args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2]));
      case "fresh" -> fresh();
      case "home" -> home();
      case "domains" -> {
        domains = Integer.parseInt(args[0]);
        writeHosts();
      }
      case "send" -> send(located(args[0], Integer.parseInt(args[1])), args);
      case "hold" -> hold(args[0], Long.parseLong(args[1]));
      case "release" -> {
        for (FSDataOutputStream out : held) {
          out.close();
        }
        held.clear();
      }
      case "figures" -> {
        Shell.Result r = Shell.run(conf, user, "admin", new String[] {"-report"}, new byte[0]);
        String text = r.text();
        int from = text.indexOf("Replicated Blocks:");
        text = text.substring(from, text.indexOf("-----"));
        // Hadoop would tell nobody to delete anything, so slow are its rounds here.
        text = text.replaceAll("(Pending deletion blocks:) \\d+", "$1 N");
        return new Shell.Result(r.code(), text.getBytes(StandardCharsets.UTF_8), r.err());
      }
      case "metasave" -> {
        return metaSave(user);
      }
      default -> {
        return null;
      }
    }
    return new Shell.Result(0, new byte[0], "");
  }

  private void same(String[] args) throws Exception {
    if (cairn == null) {
      return;
    }
    expand(args);
    Shell.Result java = Shell.run(conf, null, "fsck", args, new byte[0]);
    List<String> command = new ArrayList<>(List.of(cairn.getPath(), "--fs", cluster.uri()));
    command.addAll(List.of("-D", "dfs.namenode.http-address=" + cluster.httpAddress(), "fsck"));
    command.addAll(List.of(args));
    ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
    builder.environment().put("HADOOP_USER_NAME", System.getProperty("user.name"));
    Process process = builder.start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    int code = process.waitFor();
    Runner.equal(sameText(java.text()), sameText(text), "text of cairn fsck " + String.join(" ", args));
    Runner.equal(java.code() & 255, code, "exit status of cairn fsck " + String.join(" ", args));
  }

  /** Times made the same. */
  private static String sameText(String text) {
    return text.replaceAll(" at [A-Z][a-z]{2} .* \\d{4}", " at DATE").replaceAll("in \\d+ milli", "in N milli");
  }

  private void expand(String[] args) throws IOException {
    for (int i = 0; i < args.length; i++) {
      if (args[i].startsWith("block:")) {
        String[] parts = args[i].substring(6).split("[#+]");
        Block block = located(parts[0], Integer.parseInt(parts[1])).getBlock().getLocalBlock();
        long unit = parts.length > 2 ? Long.parseLong(parts[2]) : 0;
        args[i] = new Block(block.getBlockId() + unit).getBlockName();
      }
    }
  }

  private static List<Integer> rest(String[] args) {
    return Arrays.stream(args).skip(2).map(Integer::parseInt).toList();
  }

  /** Names, ports and times made the same; lists of places and lines that differ by nothing else, sorted. */
  private static byte[] plain(String text) {
    text = text.replaceAll("BP-\\d+-[0-9.]+-\\d+", "POOL").replaceAll("DS-[0-9a-f-]{36}", "STORAGE");
    text = text.replaceAll("in \\d+ milliseconds", "in N milliseconds");
    text = text.replaceAll("(dn|datanode)\\d+(\\.rack\\d+)?/rack\\d+", "NODE/RACK");
    text = text.replaceAll("/rack\\d+/127", "/RACK/127").replaceAll("\\(ud=ud\\d+\\)", "(ud=UD)");
    text = text.replaceAll("127\\.0\\.0\\.1:\\d+", "HOST:PORT").replaceAll("blk_\\d+(_\\d+)?", "BLK");
    text =
        Pattern.compile("blk_(-\\d+)(_\\d+)?")
            .matcher(text)
            .replaceAll(
                m -> {
                  long unit = Long.parseLong(m.group(1)) & 15;
                  return "BLK" + (unit == 0 ? "" : "+" + unit);
                });
    List<String> lines = new ArrayList<>();
    int from = 0;
    for (String line : text.split("\n", -1)) {
      Matcher list = LIST.matcher(line);
      if (list.find()) {
        String[] items = list.group(1).split(", ");
        Arrays.sort(items);
        line = line.substring(0, list.start(1)) + String.join(", ", items) + line.substring(list.end(1));
      }
      if (!line.startsWith("Block replica on ") && !line.startsWith("BLK\t") && !line.endsWith("%")) {
        lines.subList(from, lines.size()).sort(null);
        from = lines.size() + 1;
      }
      lines.add(line);
    }
    return String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
  }

  private List<LocatedBlock> blocks(String path) throws IOException {
    return fs().getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).getLocatedBlocks();
  }

  private LocatedBlock located(String path, int block) throws IOException {
    return blocks(path).get(block);
  }

  private void settle(String path, int places) throws Exception {
    await(
        path + " has " + places + " places",
        () -> blocks(path).stream().allMatch(b -> b.getLocations().length == places));
  }

  /** The places of a block by unit, or by their order for a replicated one. */
  private static Map<Integer, DatanodeInfo> places(LocatedBlock block) {
    Map<Integer, DatanodeInfo> places = new HashMap<>();
    DatanodeInfo[] nodes = block.getLocations();
    for (int i = 0; i < nodes.length; i++) {
      int unit = block instanceof LocatedStripedBlock striped ? striped.getBlockIndices()[i] : i;
      places.put(unit, nodes[i]);
    }
    return places;
  }

  private static ExtendedBlock replica(LocatedBlock block, int unit) {
    ExtendedBlock b = new ExtendedBlock(block.getBlock());
    if (block instanceof LocatedStripedBlock) {
      b.setBlockId(b.getBlockId() + unit);
    }
    return b;
  }

  private void lose(LocatedBlock block, String path, List<Integer> units) throws Exception {
    Map<Integer, DatanodeInfo> places = places(block);
    Set<String> gone = new HashSet<>();
    for (int unit : units) {
      DatanodeInfo node = places.get(unit);
      int index = cluster.indexOf(node);
      cluster.killDataNode(index);
      String name = replica(block, unit).getBlockName();
      List<Path> found;
      try (Stream<Path> all = Files.walk(Path.of(folder(index)))) {
        found =
            all.filter(p -> p.getFileName().toString().matches(name + "(_\\d+\\.meta)?")).toList();
      }
      Runner.equal(2, found.size(), "files of " + name);
      for (Path p : found) {
        Files.delete(p);
      }
      cluster.startDataNode(index);
      gone.add(node.getDatanodeUuid());
    }
    long id = block.getBlock().getBlockId();
    await(
        "units of " + path + " are gone",
        () -> {
          for (LocatedBlock b : blocks(path)) {
            if (b.getBlock().getBlockId() == id) {
              return places(b).values().stream().noneMatch(n -> gone.contains(n.getDatanodeUuid()));
            }
          }
          return false;
        });
  }

  private String folder(int index) {
    for (JsonNode n : cluster.describe().path("datanodes")) {
      if (n.path("index").asInt() == index) {
        return n.path("data").asText();
      }
    }
    throw new AssertionError("there is no DataNode " + index);
  }

  private void lone(String path, int block) throws Exception {
    LocatedBlock b = located(path, block);
    Map<String, List<Integer>> racks = new HashMap<>();
    places(b).forEach((u, n) -> racks.computeIfAbsent(n.getNetworkLocation(), r -> new ArrayList<>()).add(u));
    List<Integer> alone =
        racks.values().stream().filter(units -> units.size() == 1).findFirst().orElseThrow();
    lose(b, path, alone);
  }

  private void corrupt(LocatedBlock block, List<Integer> units) throws Exception {
    Map<Integer, DatanodeInfo> places = places(block);
    List<LocatedBlock> bad = new ArrayList<>();
    for (int unit : units) {
      DatanodeInfo node = places.get(unit);
      for (int i = 0; i < block.getLocations().length; i++) {
        if (block.getLocations()[i].equals(node)) {
          bad.add(
              new LocatedBlock(
                  replica(block, unit),
                  new DatanodeInfo[] {node},
                  new String[] {block.getStorageIDs()[i]},
                  new org.apache.hadoop.fs.StorageType[] {block.getStorageTypes()[i]}));
        }
      }
    }
    fs().getClient().getNamenode().reportBadBlocks(bad.toArray(new LocatedBlock[0]));
  }

  private void kill(String path, int number, int unit) throws Exception {
    int index = cluster.indexOf(places(located(path, number)).get(unit));
    int live = cluster.live();
    cluster.killDataNode(index);
    killed.add(index);
    await("a DataNode counts as dead", () -> cluster.live() < live);
    await("its units are forgotten", () -> !places(located(path, number)).containsKey(unit));
  }

  private void send(LocatedBlock block, String[] args) throws Exception {
    int unit = Integer.parseInt(args[2]);
    DatanodeInfo node = places(block).get(unit);
    if (!(block instanceof LocatedStripedBlock)) {
      // Those that leave already do not count: places are in no order.
      List<DatanodeInfo> others = new ArrayList<>(List.of(block.getLocations()));
      others.removeIf(n -> states.containsKey(n.getXferPort()));
      node = others.get(unit);
    }
    int port = node.getXferPort();
    states.put(port, args[3]);
    writeHosts();
    await(
        "the DataNode is " + args[4],
        () -> {
          for (DatanodeInfo n : fs().getDataNodeStats()) {
            if (n.getXferPort() == port) {
              return n.getAdminState().name().equals(args[4]);
            }
          }
          return false;
        });
  }

  private void writeHosts() throws Exception {
    List<String> lines = new ArrayList<>();
    for (JsonNode n : cluster.describe().path("datanodes")) {
      int port = Integer.parseInt(n.path("xfer").asText().split(":")[1]);
      String state = states.containsKey(port) ? ",\"adminState\":\"" + states.get(port) + "\"" : "";
      String domain = domains > 0 ? ",\"upgradeDomain\":\"ud" + lines.size() % domains + "\"" : "";
      lines.add("{\"hostName\":\"127.0.0.1\",\"port\":" + port + state + domain + "}");
    }
    Files.writeString(hosts.toPath(), "[" + String.join(",", lines) + "]");
    fs().refreshNodes();
  }

  private void stale(String path, int number, int unit) throws Exception {
    int index = cluster.indexOf(places(located(path, number)).get(unit));
    cluster.killDataNode(index);
    silent.add(index);
    await("a DataNode is stale", () -> heardWithin(STALE_MS) == cluster.nodeCount() - silent.size());
  }

  /** How many DataNodes the NameNode has heard of that lately. */
  private long heardWithin(long ms) throws Exception {
    long now = System.currentTimeMillis();
    return Arrays.stream(fs().getDataNodeStats()).filter(n -> now - n.getLastUpdate() <= ms).count();
  }

  private void fresh() throws Exception {
    for (int index : silent) {
      cluster.startDataNode(index);
    }
    silent.clear();
    await("all DataNodes are heard of", () -> heardWithin(STALE_MS / 2) == cluster.nodeCount());
  }

  private void home() throws Exception {
    states.clear();
    writeHosts();
    await(
        "all DataNodes serve",
        () -> Arrays.stream(fs().getDataNodeStats()).allMatch(n -> n.getAdminState().name().equals("NORMAL")));
  }

  private void revive() throws Exception {
    int live = cluster.live();
    for (int index : killed) {
      cluster.startDataNode(index);
    }
    cluster.waitForLive(live + killed.size());
    killed.clear();
  }

  private void hold(String path, long length) throws Exception {
    FSDataOutputStream out = fs().create(new org.apache.hadoop.fs.Path(path));
    Data.copy(new Data.Source(7, length), out);
    out.hflush();
    held.add(out);
  }

  private Shell.Result metaSave(String user) throws Exception {
    Shell.Result r = Shell.run(conf, user, "admin", new String[] {"-metasave", "state.txt"}, new byte[0]);
    if (r.code() != 0) {
      return r;
    }
    File data = new File(cluster.confDir()).getParentFile();
    File file =
        hadoop ? new File(data.getParentFile(), "state.txt") : new File(data, "namenode/metasave-state.txt");
    String text = new String(plain(Files.readString(file.toPath())), StandardCharsets.UTF_8);
    // The space of the disk and the times say nothing; the queues are in no order, nor are the places of a block; and
    // Hadoop would tell nobody to delete anything, so slow are its rounds here.
    text = text.replaceAll("(?m)^(HOST:PORT /rack\\d+ \\w+) .*$", "$1 FIGURES");
    text = text.replaceAll("(?m)^HOST:PORT /rack\\d+", "HOST:PORT RACK");
    text = text.replaceAll("(?s)(Metasave: Blocks )\\d+( waiting deletion from )\\d+( datanodes.).*(?=Corrupt Blocks:)", "$1N$2N$3\n");
    StringBuilder out = new StringBuilder();
    List<String> run = new ArrayList<>();
    for (String line : text.split("\n")) {
      if (line.startsWith("/")) {
        String[] parts = line.split("(?<=\\) )", 2);
        String[] places = parts[1].trim().split(" : *");
        Arrays.sort(places);
        run.add(parts[0] + String.join(", ", places));
      } else if (line.startsWith("Block=") || line.endsWith(" FIGURES")) {
        run.add(line);
      } else {
        run.stream().sorted().forEach(l -> out.append(l).append('\n'));
        run.clear();
        out.append(line).append('\n');
      }
    }
    run.stream().sorted().forEach(l -> out.append(l).append('\n'));
    return new Shell.Result(r.code(), out.toString().getBytes(StandardCharsets.UTF_8), r.err());
  }
}
