package cairn.interop;

import static cairn.interop.Runner.await;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;

/**
 * What operators say to running servers, and what these answer, compared with Hadoop: {@code dfsadmin} with its report by
 * value, {@code storagepolicies} and {@code debug}; one test for each part of {@code cases/operate/*.txt}. Five DataNodes
 * in one rack, each a process of its own.
 *
 * <pre>
 * mark                        takes the bytes that DataNodes use now as none
 * report ARGS                 dfsadmin -report; a figure of bytes is shown by what it has to be
 * settle PATH N               waits until each block of PATH has N places
 * kill I, start I, ended I    stops, starts a DataNode, waits until the NameNode knows; waits until its process has ended
 * hosts STATE...              what the DataNodes are meant to do, in their order; the list of hosts is read again
 * settled ROLE ADDRESS        waits until no reconfiguration runs there
 * await-bandwidth I BYTES     waits until a DataNode has a bandwidth for balancers
 * site KEY=VALUE...           writes hdfs-site.xml with these keys beside the ones of all tests
 * policy KEY=VALUE...         writes hadoop-policy.xml with these keys, each behind {@code security.}
 * bad PATH UNIT               turns one bit in the last byte of a unit on its disk
 * hold PATH LENGTH [COPIES], release   writes a file in blocks of 1 MiB and leaves it open without a client; forgets all such
 * finish PATH LENGTH          writes more into such a file and closes it
 * await-blocking N            waits until so many open files are in the way of what leaves
 * </pre>
 *
 * {@code ${NN}}, {@code ${IPC0}} and {@code ${PORT0}} stand for addresses, {@code ${META:PATH#UNIT}} and
 * {@code ${BLOCK:PATH#UNIT}} for files of a replica or unit, {@code ${ME}} for the user who runs all of it.
 */
final class OperateTests implements Transcript.Tools {
  private static final int NODES = 5;
  private static final String ME = System.getProperty("user.name");
  /** How much others may write or delete between two looks at the disk: a dead DataNode told of it a while ago. */
  private static final long SOME = 8L << 30;
  private static final Pattern PLACE = Pattern.compile("\\$\\{(META|BLOCK):([^#}]+)#(\\d+)\\}");

  private final Roles roles;
  private final File hosts;
  private final Map<Integer, Long> base = new HashMap<>();
  private final Set<Integer> gone = new HashSet<>();
  private boolean isQuiet;
  private final Map<String, FSDataOutputStream> held = new HashMap<>();

  private OperateTests(Roles roles, File hosts) {
    this.roles = roles;
    this.hosts = hosts;
  }

  static void run(Main.Context x) throws Exception {
    File[] files = new File(x.home(), "hadoop/cases/operate").listFiles((d, n) -> n.endsWith(".txt"));
    Arrays.sort(files);
    for (File file : files) {
      Transcript t = new Transcript(file);
      if (t.cases.stream().anyMatch(c -> x.runner().wants(name(file, c)))) {
        run(x, file, t);
      }
    }
  }

  private static String name(File file, Transcript.Case c) {
    return "operate/" + file.getName().replace(".txt", "") + "/" + c.name;
  }

  private static void run(Main.Context x, File file, Transcript t) throws Exception {
    Map<String, String> keys = new HashMap<>(x.keys());
    keys.put("dfs.namenode.heartbeat.recheck-interval", "500");
    keys.put("dfs.namenode.decommission.interval", "1");
    // A connection that waits for the next request counts as one that is being served.
    keys.put("dfs.datanode.socket.reuse.keepalive", "1");
    File hosts = new File(x.work(), file.getName() + ".hosts");
    keys.put(
        "dfs.namenode.hosts.provider.classname",
        "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager");
    keys.put("dfs.hosts", hosts.getPath());
    Files.writeString(hosts.toPath(), "");
    Map<String, String> policy = new TreeMap<>();
    if (file.getName().equals("policy.txt")) {
      authorize(keys, policy);
    }
    File data = new File(x.work(), file.getName());
    try (Roles roles = new Roles(x.target(), data, NODES, keys, policy)) {
      OperateTests tools = new OperateTests(roles, hosts);
      Map<String, String> words = new HashMap<>();
      words.put("NN", "127.0.0.1:" + roles.rpcPort());
      words.put("ME", ME);
      for (int i = 0; i < NODES; i++) {
        words.put("PORT" + i, "" + roles.ports(i)[0]);
        words.put("IPC" + i, "127.0.0.1:" + roles.ports(i)[1]);
      }
      for (Transcript.Case c : t.cases) {
        File local = new File(x.work(), "local/" + name(file, c).replace(' ', '-'));
        x.runner()
            .test(
                name(file, c),
                () -> Transcript.run(c, x.target(), roles.conf(), local, x.record(), words, tools));
      }
      if (x.record()) {
        t.save();
      }
    }
  }

  /** Has servers obey access lists of services: bob is in staff, dave in guests, and carol acts for bob and frank. */
  private static void authorize(Map<String, String> keys, Map<String, String> policy) {
    keys.put("hadoop.security.authorization", "true");
    keys.put("hadoop.user.group.static.mapping.overrides", "bob=staff;dave=guests");
    keys.put("hadoop.proxyuser.carol.users", "bob,frank");
    keys.put("hadoop.proxyuser.carol.hosts", "127.0.0.1");
    policy.put("security.client.protocol.acl", ME + ",alice staff");
    policy.put("security.client.datanode.protocol.acl", ME + ",alice guests");
    policy.put("security.refresh.policy.protocol.acl", ME);
    policy.put("security.get.user.mappings.protocol.acl.blocked", "alice");
    policy.put("security.reconfiguration.protocol.hosts", "10.0.0.0/8");
    policy.put("security.service.authorization.default.acl.blocked", "eve");
  }

  private DistributedFileSystem fs() throws IOException {
    return roles.fs();
  }

  @Override
  public Shell.Result run(String tool, String user, String[] args, byte[] stdin) throws Exception {
    isQuiet &= tool.equals("mark") || tool.equals("report");
    switch (tool) {
      case "mark" -> {
        quiet();
        for (DatanodeInfo node : fs().getDataNodeStats(DatanodeReportType.LIVE)) {
          base.put(roles.indexOf(node), node.getDfsUsed());
        }
      }
      case "report" -> {
        quiet();
        List<String> all = new ArrayList<>(List.of("-report"));
        all.addAll(List.of(args));
        String[] whole = all.toArray(new String[0]);
        return edited(Shell.run(roles.conf(), user, "admin", whole, new byte[0]), this::byValue);
      }
      case "settle" -> settle(args[0], Integer.parseInt(args[1]));
      case "kill" -> {
        int node = Integer.parseInt(args[0]);
        roles.killDataNode(node);
        gone.add(node);
        await(
            "a DataNode counts as dead, and its blocks are lost",
            () -> {
              for (DatanodeInfo dead : fs().getDataNodeStats(DatanodeReportType.DEAD)) {
                if (roles.indexOf(dead) == node) {
                  // Hadoop shows it as dead some seconds before it does anything about it.
                  return dead.isInMaintenance() || dead.getNumBlocks() == 0;
                }
              }
              return false;
            });
      }
      case "start" -> {
        int live = roles.live();
        roles.startDataNode(Integer.parseInt(args[0]));
        // Hadoop now counts what is on its disk, Cairn what is in its files.
        base.put(Integer.parseInt(args[0]), -1L);
        gone.remove(Integer.parseInt(args[0]));
        await("a DataNode counts as live", () -> roles.live() > live);
      }
      case "ended" -> {
        int node = Integer.parseInt(args[0]);
        await("the process has ended", () -> !roles.isRunning(node));
        await("the DataNode counts as dead", () -> roles.live() < NODES);
      }
      case "settled" -> {
        String[] status = {"-reconfig", args[0], args[1], "status"};
        await(
            "reconfiguration has ended",
            () -> !Shell.run(roles.conf(), null, "admin", status, new byte[0]).text().contains("still running"));
      }
      case "await-bandwidth" -> {
        String[] get = {"-getBalancerBandwidth", "127.0.0.1:" + roles.ports(Integer.parseInt(args[0]))[1]};
        await(
            "the DataNode has the bandwidth",
            () -> Shell.run(roles.conf(), null, "admin", get, new byte[0]).text().contains(" " + args[1] + " "));
      }
      case "hosts" -> hosts(args);
      case "site" -> roles.writeSite(pairs("", args));
      case "policy" -> roles.writePolicy(pairs("security.", args));
      case "bad" -> {
        Path file = file("BLOCK", args[0], Integer.parseInt(args[1]));
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 1] ^= 1;
        Files.write(file, bytes);
      }
      case "hold" -> {
        FileSystem own = FileSystem.newInstance(roles.conf());
        org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(args[0]);
        short copies = args.length > 2 ? Short.parseShort(args[2]) : own.getDefaultReplication(path);
        FSDataOutputStream out = own.create(path, true, 4096, copies, 1 << 20);
        Data.copy(new Data.Source(7, Long.parseLong(args[1])), out);
        out.hflush();
        held.put(args[0], out);
      }
      case "finish" -> {
        FSDataOutputStream out = held.remove(args[0]);
        Data.copy(new Data.Source(8, Long.parseLong(args[1])), out);
        out.close();
      }
      case "await-blocking" -> {
        int wanted = Integer.parseInt(args[0]);
        await("so many open files are in the way", () -> blocking() == wanted);
      }
      case "release" -> held.clear();
      case "storagepolicies", "debug" -> {
        for (int i = 0; i < args.length; i++) {
          Matcher m = PLACE.matcher(args[i]);
          if (m.matches()) {
            args[i] = file(m.group(1), m.group(2), Integer.parseInt(m.group(3))).toString();
          }
        }
        return edited(Shell.run(roles.conf(), user, tool, args, new byte[0]), this::plain);
      }
      case "admin" -> {
        return edited(Shell.run(roles.conf(), user, tool, args, new byte[0]), this::plain);
      }
      default -> {
        return null;
      }
    }
    return new Shell.Result(0, new byte[0], "");
  }

  private static Map<String, String> pairs(String prefix, String[] args) {
    Map<String, String> pairs = new TreeMap<>();
    for (String arg : args) {
      String[] pair = arg.split("=", 2);
      pairs.put(prefix + pair[0], pair[1]);
    }
    return pairs;
  }

  private int blocking() throws IOException {
    int n = 0;
    var files = fs().listOpenFiles(EnumSet.of(OpenFilesType.BLOCKING_DECOMMISSION), "/");
    for (; files.hasNext(); files.next()) {
      n++;
    }
    return n;
  }

  private interface Edit {
    String of(String text);
  }

  private static Shell.Result edited(Shell.Result r, Edit edit) {
    byte[] out = edit.of(r.text()).getBytes(StandardCharsets.UTF_8);
    return new Shell.Result(r.code(), out, edit.of(r.err()));
  }

  /** Folders, addresses and what only measures this machine, made the same. */
  private String plain(String text) {
    text = text.replaceAll("BP-\\d+-[0-9.]+-\\d+", "POOL").replace(hosts.getParent(), "DIR");
    text = text.replaceAll("DIR\\S*/blk_-?\\d+(_\\d+\\.meta)?", "FILE$1").replaceAll("FILE_\\d+", "FILE");
    text = text.replaceAll("blk_-\\d+(_\\d+)?", "BLK").replaceAll("Uptime: \\d+", "Uptime: N");
    text = text.replaceAll("localhost/127", "127").replaceAll("\"(\\S+)\" to ", "HOST to ");
    text = text.replaceAll("\n(\tat [^\n]*\n)*\\.\n", ".\n");
    Matcher volume = Pattern.compile("Directory: \\S+/dn(\\d)\n(?:.*\n)?Capacity Used: (\\d+)\\(.*\\)").matcher(text);
    if (volume.find()) {
      long used = Long.parseLong(volume.group(2)) - base.getOrDefault(Integer.parseInt(volume.group(1)), 0L);
      text = text.replaceAll("(Capacity Used: ).*", "$1+" + used);
    }
    text = text.replaceAll("(?m)^\tat .*$", "").replace("ipc." + roles.rpcPort() + ".", "ipc.PORT.");
    text = text.replaceAll("(Capacity Left: )\\d+\\([^)]*\\)", "$1N").replaceAll("local host is: \\S+", "local host is: ME");
    for (int i = 0; i < NODES; i++) {
      text = text.replace(":" + roles.ports(i)[1], ":IPC" + i).replace(":" + roles.ports(i)[0], ":PORT" + i);
    }
    text = text.replace("127.0.0.1:" + roles.rpcPort(), "NN").replaceAll("(?m)^\\s*\\.\\.\\. \\d+ more$", "");
    // Several DataNodes are asked at once.
    List<String> lines = new ArrayList<>(List.of(text.replaceAll("(starts at txid) \\d+", "$1 N").split("\n", -1)));
    List<String> started = new ArrayList<>(lines);
    started.removeIf(line -> !line.startsWith("Started reconfiguration"));
    lines.removeAll(started);
    started.sort(null);
    lines.addAll(0, started);
    if (text.startsWith("Rack: ")) {
      lines.sort(Comparator.comparing(line -> line.isEmpty() ? "~" : line.startsWith("Rack") ? "" : line));
    }
    return String.join("\n", lines);
  }

  /** The report with DataNodes in their order, and each figure of bytes as what it has to be. */
  private String byValue(String text) {
    int rule = text.indexOf("-----");
    if (rule < 0) {
      return text;
    }
    boolean isKnown = base.values().stream().allMatch(used -> used >= 0);
    Map<Integer, Long> counted = new HashMap<>(base);
    counted.keySet().removeAll(gone);
    long sum = isKnown ? counted.values().stream().mapToLong(used -> used).sum() : -1;
    StringBuilder out = new StringBuilder(figures(text.substring(0, rule), sum));
    List<String> run = new ArrayList<>();
    for (String p : text.substring(rule).split("\n\n+")) {
      Matcher name = Pattern.compile("(?m)^Name: 127\\.0\\.0\\.1:(\\d+).*$").matcher(p);
      if (!name.find()) {
        run.stream().sorted().forEach(out::append);
        run.clear();
        out.append(p).append('\n');
        continue;
      }
      int index = 0;
      while (roles.ports(index)[0] != Integer.parseInt(name.group(1))) {
        index++;
      }
      run.add(figures(name.replaceFirst("Name: DN" + index), base.getOrDefault(index, 0L)) + "\n");
    }
    run.stream().sorted().forEach(out::append);
    return out.toString();
  }

  private String figures(String text, long usedBefore) {
    File disk = hosts.getParentFile();
    Map<String, Long> seen = new HashMap<>();
    StringBuilder out = new StringBuilder();
    for (String line : text.split("\n")) {
      Matcher m = Pattern.compile("([A-Za-z ]+): (\\d+) \\(.*\\)").matcher(line);
      if (m.matches()) {
        long value = Long.parseLong(m.group(2));
        seen.put(m.group(1), value);
        line =
            m.group(1)
                + ": "
                + switch (m.group(1)) {
                  case "Configured Capacity" -> times(value, disk.getTotalSpace(), 0, "the disk's");
                  case "DFS Remaining" -> times(value, disk.getUsableSpace(), SOME, "what is free");
                  case "Present Capacity" -> times(value, disk.getUsableSpace(), SOME, "what is free");
                  case "Non DFS Used" ->
                      times(value, disk.getTotalSpace() - disk.getFreeSpace(), SOME, "what is taken");
                  case "DFS Used" -> usedBefore < 0 ? "N" : "+" + (value - usedBefore);
                  default -> "" + value;
                };
      }
      line = line.replaceAll("Hostname: .*", "Hostname: WORD").replaceAll("(DFS Used%|DFS Remaining%): [0-9.]+%", "$1: N%");
      out.append(line).append('\n');
    }
    return out.toString();
  }

  /** How often {@code one} is in {@code value}. */
  private static String times(long value, long one, long tolerance, String what) {
    long n = Math.round((double) value / one);
    return n > 0 && Math.abs(value - n * one) <= n * tolerance ? n + " x " + what : "" + value;
  }

  /** Waits until every live DataNode has told what it has now: one heartbeat may have been on its way. */
  private void quiet() throws Exception {
    if (isQuiet) {
      return;
    }
    isQuiet = true;
    await("all is deleted that is to be", () -> fs().getClient().getNamenode().getStats()[8] == 0);
    long since = System.currentTimeMillis() + 1100;
    await(
        "each DataNode has sent two heartbeats",
        () ->
            Arrays.stream(fs().getDataNodeStats(DatanodeReportType.LIVE))
                .allMatch(node -> node.getLastUpdate() > since));
  }

  private void settle(String path, int places) throws Exception {
    await(
        path + " has " + places + " places",
        () -> {
          for (LocatedBlock b : fs().getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).getLocatedBlocks()) {
            if (b.getLocations().length != places) {
              return false;
            }
          }
          return true;
        });
  }

  private Path file(String kind, String path, int unit) throws Exception {
    LocatedBlock block = fs().getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).get(0);
    List<Integer> nodes = new ArrayList<>();
    for (DatanodeInfo node : block.getLocations()) {
      nodes.add(roles.indexOf(node));
    }
    long id = block.getBlock().getBlockId();
    int node = nodes.stream().sorted().skip(unit).findFirst().orElseThrow();
    if (block instanceof LocatedStripedBlock striped) {
      int at = 0;
      while (striped.getBlockIndices()[at] != unit) {
        at++;
      }
      node = nodes.get(at);
      id += unit;
    }
    String name = "blk_" + id + (kind.equals("META") ? "_" + block.getBlock().getGenerationStamp() + ".meta" : "");
    try (Stream<Path> all = Files.walk(roles.folder(node).toPath())) {
      return all.filter(p -> p.getFileName().toString().equals(name)).findFirst().orElseThrow();
    }
  }

  private void hosts(String[] states) throws Exception {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < NODES; i++) {
      String state = states[i].equals("NORMAL") ? "" : ",\"adminState\":\"" + states[i] + "\"";
      lines.add("{\"hostName\":\"127.0.0.1\",\"port\":" + roles.ports(i)[0] + state + "}");
    }
    Files.writeString(hosts.toPath(), "[" + String.join(",", lines) + "]");
    fs().refreshNodes();
  }
}
