package cairn.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The shell and admin commands, compared with what Hadoop printed: one test for each part of {@code cases/*.txt}. */
final class CommandTests {
  private CommandTests() {}

  static void run(Main.Context x) throws Exception {
    File[] files = new File(x.home(), "hadoop/cases").listFiles((d, n) -> n.endsWith(".txt"));
    Arrays.sort(files);
    List<File> large = new ArrayList<>();
    List<File> small = new ArrayList<>();
    List<File> leaving = new ArrayList<>();
    // Recorded on a cluster of their own: what they leave behind would show in the others.
    List<File> calls = new ArrayList<>();
    List<File> features = new ArrayList<>();
    List<File> cached = new ArrayList<>();
    List<File> ordered = new ArrayList<>();
    for (File file : files) {
      boolean wanted =
          new Transcript(file).cases.stream().anyMatch(c -> x.runner().wants(name(file, c)));
      if (wanted) {
        String group = file.getName().replaceAll("[-.].*", "");
        switch (group) {
          case "small" -> small.add(file);
          case "leaving" -> leaving.add(file);
          case "acl", "calls", "snapshot", "type" -> calls.add(file);
          case "cached" -> cached.add(file);
          case "ordered" -> ordered.add(file);
          case "cache", "features" -> features.add(file);
          default -> large.add(file);
        }
      }
    }
    run(x, "commands", 15, 5, large, x.keys());
    run(x, "commands-calls", 15, 5, calls, x.keys());
    run(x, "commands-small", 4, 1, small, x.keys());
    Map<String, String> more = x.keys();
    more.put("fs.trash.interval", "60");
    more.put("hadoop.proxyuser.carol.hosts", "127.0.0.1");
    more.put("hadoop.proxyuser.carol.users", "ann");
    more.put("hadoop.proxyuser.dave.hosts", "10.1.2.3");
    more.put("hadoop.proxyuser.dave.groups", "*");
    run(x, "commands-features", 15, 5, features, more);
    Map<String, String> inOrder = x.keys();
    inOrder.put("fs.trash.interval", "60");
    inOrder.put("dfs.namenode.snapshot.deletion.ordered", "true");
    // Nobody knows when: what is marked stays until it is deleted again.
    inOrder.put("dfs.namenode.snapshot.deletion.ordered.gc.period.ms", "86400000");
    inOrder.put("dfs.namenode.snapshot.trashroot.enabled", "true");
    run(x, "commands-ordered", 9, 3, ordered, inOrder);
    Map<String, String> memory = x.keys();
    memory.put("dfs.namenode.path.based.cache.refresh.interval.ms", "200");
    if (!x.target().isHadoop()) {
      // A DataNode of Hadoop does not start with it unless it has native code.
      memory.put("dfs.datanode.max.locked.memory", "1200000");
    }
    run(x, "commands-cached", 9, 3, cached, memory);
    Map<String, String> keys = x.keys();
    File hosts = new File(x.work(), "hosts.json");
    String manager = "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager";
    keys.put("dfs.namenode.hosts.provider.classname", manager);
    keys.put("dfs.hosts", hosts.getPath());
    keys.put("dfs.namenode.decommission.interval", "1");
    keys.put("dfs.namenode.maintenance.replication.min", "2");
    Files.writeString(hosts.toPath(), "");
    run(x, "commands-leaving", 3, 1, leaving, keys);
  }

  private static void run(
      Main.Context x, String data, int nodes, int racks, List<File> files, Map<String, String> keys)
      throws Exception {
    if (files.isEmpty()) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), data), nodes, racks, keys)) {
      Map<String, String> words = new HashMap<>();
      words.put("HOSTS", keys.getOrDefault("dfs.hosts", ""));
      words.put("FS", cluster.uri().toString());
      for (JsonNode node : cluster.describe().path("datanodes")) {
        words.put("IPC" + node.path("index").asInt(), node.path("ipc").asText());
        words.put("PORT" + node.path("index").asInt(), node.path("xfer").asText().split(":")[1]);
      }
      for (File file : files) {
        Transcript t = new Transcript(file);
        for (Transcript.Case c : t.cases) {
          File local = new File(x.work(), "local/" + name(file, c).replace(' ', '-'));
          x.runner()
              .test(
                  name(file, c),
                  () -> Transcript.run(c, x.target(), cluster.conf(), local, x.record(), words));
        }
        if (x.record()) {
          t.save();
        }
      }
    }
  }

  private static String name(File file, Transcript.Case c) {
    return "commands/" + file.getName().replace(".txt", "") + "/" + c.name;
  }
}
