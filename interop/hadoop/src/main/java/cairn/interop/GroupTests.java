package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/**
 * Files in a directory with a contiguous policy: stock clients write and read plain blocks, servers put parity over
 * them, drop what is too much, serve what is lost, and mend it.
 */
final class GroupTests {
  private static final String POLICY = "RS-3-2-contiguous";
  private static final int UNITS = 5;
  private static final int LOSSES = 2;
  private static final long BLOCK = 1 << 20;
  /** Two groups, one of which ends short. */
  private static final long LENGTH = 5 * BLOCK + 777_777;

  private final ClusterProcess cluster;
  private final DistributedFileSystem fs;
  private final Path folder = new Path("/contiguous");
  private final Path file = new Path(folder, "f");
  private final Set<Integer> gone = new TreeSet<>();
  private String digest;

  private GroupTests(ClusterProcess cluster) throws IOException {
    this.cluster = cluster;
    fs = cluster.fs();
  }

  static void run(Main.Context x) throws Exception {
    if (x.target().isHadoop() || !x.runner().wantsGroup("groups/")) {
      return;
    }
    x.runner()
        .test(
            "groups/a stock client's file is grouped, read through losses, mended and deleted",
            () -> {
              Map<String, String> keys = new HashMap<>(x.keys());
              // A DataNode is dead after 13 s of silence.
              keys.put("dfs.namenode.heartbeat.recheck-interval", "1500");
              keys.put("cairn.ec.contiguous.quiet-time", "0");
              keys.put("cairn.ec.contiguous.short-quiet-time", "0");
              keys.put("cairn.ec.contiguous.min-length", "1");
              File data = new File(x.work(), "groups");
              int nodes = UNITS + LOSSES + 2;
              try (ClusterProcess cluster = new ClusterProcess(x.target(), data, nodes, 1, keys)) {
                new GroupTests(cluster).tell();
              }
            });
  }

  private void tell() throws Exception {
    fs.mkdirs(folder);
    fs.enableErasureCodingPolicy(POLICY);
    fs.setErasureCodingPolicy(folder, POLICY);
    digest = FileTests.store(fs, file, 1, LENGTH, BLOCK);
    equal(POLICY, fs.getErasureCodingPolicy(file).getName(), "policy");
    check(blocks().stream().noneMatch(LocatedBlock::isStriped), "plain blocks");
    read("when it was written");
    FileChecksum before = fs.getFileChecksum(file);

    awaitGrouped("grouped");
    read("when it is grouped");
    equal(before, fs.getFileChecksum(file), "checksum of the file when it is grouped");
    // Plain blocks have their length once, and parity the length of the longest member.
    long stored = stored();
    check(stored < LENGTH * 18 / 10, stored + " bytes on disks for " + LENGTH);

    lose(holders().get(0));
    read("when a member is lost");
    equal(before, fs.getFileChecksum(file), "checksum of the file when a member is lost");
    awaitGrouped("mended");
    read("when it is mended");

    lose(holders().get(1), holders().get(2));
    read("when two members are lost");
    awaitGrouped("mended again");
    read("when it is mended again");
    equal(before, fs.getFileChecksum(file), "checksum of the file when it is mended again");

    check(fs.delete(file, false), "delete");
    Runner.await(120, () -> stored() + " bytes are left", () -> stored() == 0);
  }

  private List<LocatedBlock> blocks() throws IOException {
    return fs.getClient()
        .getLocatedBlocks(file.toUri().getPath(), 0, Long.MAX_VALUE)
        .getLocatedBlocks();
  }

  /** The DataNode that has each block, where there is one, by its index. */
  private List<Integer> holders() throws IOException {
    Map<String, Integer> indices = cluster.indexByUuid();
    List<Integer> holders = new ArrayList<>();
    for (LocatedBlock b : blocks()) {
      DatanodeInfo[] nodes = b.getLocations();
      holders.add(nodes.length == 0 ? null : indices.get(nodes[0].getDatanodeUuid()));
    }
    return holders;
  }

  /** Each block has one replica, and so much parity is on disks as belongs to it. */
  private void awaitGrouped(String what) throws Exception {
    Runner.await(
        120, () -> what + ": " + blocks() + ", " + parities() + " parities", this::isGrouped);
  }

  private boolean isGrouped() throws Exception {
    for (LocatedBlock b : blocks()) {
      int replicas = replicas(b.getBlock().getBlockId());
      if (b.getLocations().length != 1 || replicas != 1) {
        return false;
      }
    }
    return parities() == 2 * LOSSES;
  }

  /** Stops DataNodes and waits until the NameNode takes them to be dead. */
  private void lose(Integer... nodes) throws Exception {
    Set<Integer> lost = new TreeSet<>(List.of(nodes));
    for (int node : lost) {
      cluster.killDataNode(node);
      gone.add(node);
    }
    Runner.await(
        "DataNodes are dead",
        () -> fs.getDataNodeStats(DatanodeReportType.DEAD).length == gone.size());
  }

  private void read(String when) throws Exception {
    try (FSDataInputStream in = fs.open(file)) {
      equal(digest, Data.digest(in), "SHA-256 " + when);
    }
    Random random = new Random(when.hashCode());
    byte[] all = new byte[(int) LENGTH];
    check(new Data.Source(1, LENGTH).readNBytes(all, 0, all.length) == all.length, "bytes");
    try (FSDataInputStream in = fs.open(file)) {
      for (int i = 0; i < 20; i++) {
        int at = random.nextInt(all.length - 1);
        byte[] piece = new byte[1 + random.nextInt(Math.min(100_000, all.length - at))];
        in.readFully(at, piece);
        for (int j = 0; j < piece.length; j++) {
          check(piece[j] == all[at + j], "byte " + (at + j) + " " + when);
        }
      }
    }
  }

  /** Block files of DataNodes that run. */
  private List<File> files() throws IOException {
    List<File> found = new ArrayList<>();
    for (JsonNode node : cluster.describe().path("datanodes")) {
      if (gone.contains(node.path("index").asInt())) {
        continue;
      }
      try (Stream<java.nio.file.Path> paths =
          Files.walk(new File(node.path("data").asText()).toPath())) {
        paths
            .filter(path -> path.getFileName().toString().matches("blk_[0-9]+"))
            .forEach(path -> found.add(path.toFile()));
      } catch (java.io.UncheckedIOException e) {
        // A file or folder went away meanwhile: the next look shows what is left.
        continue;
      }
    }
    return found;
  }

  private long stored() throws IOException {
    return files().stream().mapToLong(File::length).sum();
  }

  private int replicas(long id) throws IOException {
    return (int) files().stream().filter(f -> f.getName().equals("blk_" + id)).count();
  }

  private long parities() throws IOException {
    return files().stream().filter(f -> Long.parseLong(f.getName().substring(4)) >>> 61 == 1).count();
  }
}
