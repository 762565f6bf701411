package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.server.sps.ExternalStoragePolicySatisfier;

/** Hadoop's own satisfier of storage policies, a process of its own beside the NameNode. */
final class SatisfierTests {
  private static final int MIB = 1 << 20;
  private static final int PATIENCE_S = 90;
  private static final String MARK = "user.hdfs.sps";

  private final Main.Context x;

  private SatisfierTests(Main.Context x) {
    this.x = x;
  }

  static void run(Main.Context x) throws Exception {
    SatisfierTests t = new SatisfierTests(x);
    x.runner().test("satisfier/Hadoop's satisfier brings files and groups to where a changed policy wants them", t::satisfy);
  }

  private void satisfy() throws Exception {
    Map<String, String> keys = x.keys();
    keys.put("dfs.storage.policy.satisfier.mode", "external");
    keys.put("dfs.namenode.fs-limits.min-block-size", "1");
    File data = new File(x.work(), "satisfier");
    try (ClusterProcess cluster = new ClusterProcess(x.target(), data, 6, 2, keys, "DISK,ARCHIVE,SSD")) {
      DistributedFileSystem fs = cluster.fs();
      fs.enableErasureCodingPolicy("RS-3-2-1024k");
      Map<Path, String> stored = new TreeMap<>();
      fs.mkdirs(new Path("/cold/ec"));
      fs.setErasureCodingPolicy(new Path("/cold/ec"), "RS-3-2-1024k");
      Path striped = new Path("/cold/ec/f");
      stored.put(striped, FileTests.store(fs, striped, 1, 7 * MIB + 11, 4 * MIB));
      Path whole = new Path("/cold/3x/f");
      stored.put(whole, FileTests.store(fs, whole, 2, 9 * MIB, 4 * MIB));
      Path fast = new Path("/fast");
      stored.put(fast, FileTests.store(fs, fast, 3, 3 * MIB, 4 * MIB));
      Path stays = new Path("/stays");
      stored.put(stays, FileTests.store(fs, stays, 4, 3 * MIB, 4 * MIB));
      for (Path path : stored.keySet()) {
        equal(Set.of(StorageType.DISK), types(fs, path), "types of " + path);
      }
      fs.setStoragePolicy(new Path("/cold"), "COLD");
      fs.setStoragePolicy(fast, "ALL_SSD");
      // What is asked for before a restart of the NameNode is not forgotten.
      fs.satisfyStoragePolicy(new Path("/cold"));
      check(fs.getXAttrs(new Path("/cold")).containsKey(MARK), "the request is marked");
      cluster.kill();
      cluster.start();
      fs = cluster.fs();
      Process satisfier = launch(fs.getUri().toString(), data);
      try {
        fs.satisfyStoragePolicy(fast);
        await(fs, striped, StorageType.ARCHIVE);
        await(fs, whole, StorageType.ARCHIVE);
        await(fs, fast, StorageType.SSD);
        equal(Set.of(StorageType.DISK), types(fs, stays), "types of " + stays);
        awaitDone(fs, new Path("/cold"), fast);
        for (Map.Entry<Path, String> e : stored.entrySet()) {
          try (FSDataInputStream in = fs.open(e.getKey())) {
            equal(e.getValue(), Data.digest(in), "SHA-256 of " + e.getKey());
          }
        }
      } finally {
        satisfier.destroyForcibly().waitFor();
      }
    }
  }

  /** Starts what {@code hdfs sps} runs. */
  private static Process launch(String uri, File data) throws IOException {
    File conf = new File(data, "satisfier-conf");
    conf.mkdirs();
    Configuration keys = new Configuration(false);
    keys.set("fs.defaultFS", uri);
    keys.set("dfs.storage.policy.satisfier.mode", "external");
    // What a test cannot wait for: when it looks for what is left to do, and for new DataNodes.
    keys.set("dfs.storage.policy.satisfier.recheck.timeout.millis", "3000");
    keys.set("dfs.storage.policy.satisfier.self.retry.timeout.millis", "10000");
    keys.set("dfs.storage.policy.satisfier.datanode.cache.refresh.interval.ms", "1000");
    try (OutputStream out = new FileOutputStream(new File(conf, "hdfs-site.xml"))) {
      keys.writeXml(out);
    }
    List<String> command = new ArrayList<>();
    command.add(System.getProperty("java.home") + "/bin/java");
    String path = conf.getPath() + File.pathSeparator + System.getProperty("java.class.path");
    command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-cp", path));
    command.add("-Dlog4j.configuration=log4j-stderr.properties");
    command.add(ExternalStoragePolicySatisfier.class.getName());
    File log = new File(data, "satisfier.log");
    return new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start();
  }

  private static Set<StorageType> types(DistributedFileSystem fs, Path path) throws IOException {
    Set<StorageType> types = new TreeSet<>();
    String src = path.toUri().getPath();
    for (LocatedBlock b : fs.getClient().getLocatedBlocks(src, 0, Long.MAX_VALUE).getLocatedBlocks()) {
      types.addAll(Arrays.asList(b.getStorageTypes()));
      Set<String> nodes = new HashSet<>();
      Arrays.stream(b.getLocations()).forEach(n -> nodes.add(n.getDatanodeUuid()));
      check(nodes.size() >= 3, path + " has only " + nodes.size() + " places");
    }
    return types;
  }

  private static void await(DistributedFileSystem fs, Path path, StorageType wanted) throws Exception {
    Runner.await(
        PATIENCE_S,
        () -> path + " is on " + wanted + ", not on " + types(fs, path),
        () -> types(fs, path).equals(Set.of(wanted)));
  }

  /** Waits until the satisfier has taken its marks away. */
  private static void awaitDone(DistributedFileSystem fs, Path... paths) throws Exception {
    for (Path path : paths) {
      Runner.await(PATIENCE_S, path + " is not marked any more", () -> !fs.getXAttrs(path).containsKey(MARK));
    }
  }
}
