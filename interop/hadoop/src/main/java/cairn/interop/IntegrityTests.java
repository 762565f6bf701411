package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DatanodeInfoWithStorage;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;

/** Checksums of files whose units are gone, and replicas that Hadoop's client finds to be bad. */
final class IntegrityTests {
  private static final int MIB = 1 << 20;
  private static final long PATIENCE_MS = 60_000;

  private final Runner runner;
  private final ClusterProcess cluster;
  private final boolean isHadoop;

  private IntegrityTests(Runner runner, ClusterProcess cluster, boolean isHadoop) {
    this.runner = runner;
    this.cluster = cluster;
    this.isHadoop = isHadoop;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("integrity/")) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), "integrity"), 15, 5, x.keys())) {
      FileTests.makeFolders(cluster.fs(), "/integrity");
      IntegrityTests t = new IntegrityTests(x.runner(), cluster, x.target().isHadoop());
      t.reported("3x");
      t.reported("RS-6-3-1024k");
      t.checksums("RS-6-3-1024k", List.of(0, 2, 5));
      t.checksums("RS-3-2-1024k", List.of(1, 3));
    }
  }

  /** Row 25 of the field notes: what is gone is decoded, and what has failed is no source. */
  private void checksums(String policy, List<Integer> lost) {
    runner.test(
        "integrity/row 25, the checksum of a file is the same with units " + lost + " gone/" + policy,
        () -> {
          Path path = new Path("/integrity/" + policy, "sum");
          FileTests.store(cluster.fs(), path, 7, 13L * MIB + 77, 128L * MIB);
          List<FileChecksum> before = sums(path);
          LocatedStripedBlock group = (LocatedStripedBlock) first(path);
          List<Integer> killed = new ArrayList<>();
          for (int i = 0; i < group.getLocations().length; i++) {
            if (lost.contains((int) group.getBlockIndices()[i])) {
              killed.add(cluster.indexOf(group.getLocations()[i]));
            }
          }
          equal(lost.size(), killed.size(), "holders of the units");
          for (int i : killed) {
            cluster.killDataNode(i);
          }
          try {
            equal(before, sums(path), "checksums");
          } finally {
            for (int i : killed) {
              cluster.startDataNode(i);
            }
          }
        });
  }

  private List<FileChecksum> sums(Path path) throws IOException {
    List<FileChecksum> sums = new ArrayList<>();
    for (String mode : List.of("MD5MD5CRC", "COMPOSITE_CRC")) {
      Configuration conf = new Configuration(cluster.fs().getConf());
      conf.set("dfs.checksum.combine.mode", mode);
      try (FileSystem fs = FileSystem.newInstance(cluster.fs().getUri(), conf)) {
        sums.add(fs.getFileChecksum(path));
      }
    }
    return sums;
  }

  private LocatedBlock first(Path path) throws IOException {
    return cluster
        .fs()
        .getClient()
        .getLocatedBlocks(path.toUri().getPath(), 0, Long.MAX_VALUE)
        .getLocatedBlocks()
        .get(0);
  }

  /** A bit flips on disk; Hadoop's client reads on, tells the NameNode, and another node gets a good one. */
  private void reported(String name) {
    runner.test(
        "integrity/what Hadoop's client finds to be corrupt is replaced/" + name,
        () -> {
          Path path = new Path("/integrity/" + name, "flipped");
          FileTests.Stored stored =
              new FileTests.Stored(path, 9, 4L * MIB, FileTests.store(cluster.fs(), path, 9, 4L * MIB, 128L * MIB));
          LocatedBlock block = first(path);
          DatanodeInfo holder = block.getLocations()[0];
          String storage = ((DatanodeInfoWithStorage) holder).getStorageID();
          int copies = block.getLocations().length;
          long id = block.getBlock().getBlockId();
          if (block instanceof LocatedStripedBlock striped) {
            id += striped.getBlockIndices()[0];
          }
          File data = new File(cluster.describe().path("datanodes").get(cluster.indexOf(holder)).path("data").asText());
          List<File> found = new ArrayList<>();
          find(data, "blk_" + id, found);
          equal(1, found.size(), "block files");
          flip(found.get(0), 300_000);
          long end = System.currentTimeMillis() + PATIENCE_MS;
          Set<String> now;
          do {
            check(System.currentTimeMillis() < end, "not replaced in time");
            equal(stored.sha(), read(path), "bytes read meanwhile");
            now = new HashSet<>();
            for (DatanodeInfo node : first(path).getLocations()) {
              now.add(((DatanodeInfoWithStorage) node).getStorageID());
            }
          } while (now.contains(storage) || now.size() < copies);
          // Hadoop's NameNode leaves a bad internal block on its disk, for longer than a minute at least.
          boolean isLeft = isHadoop && block instanceof LocatedStripedBlock;
          Runner.await("the bad one is deleted", () -> isLeft || !found.get(0).exists());
        });
  }

  private String read(Path path) throws IOException {
    try (FSDataInputStream in = cluster.fs().open(path)) {
      return Data.digest(in);
    }
  }

  private static void flip(File file, long at) throws IOException {
    try (RandomAccessFile bytes = new RandomAccessFile(file, "rw")) {
      bytes.seek(at);
      int old = bytes.read();
      bytes.seek(at);
      bytes.write(old ^ 4);
    }
  }

  private static void find(File dir, String name, List<File> found) {
    File[] files = dir.listFiles();
    for (File f : files == null ? new File[0] : files) {
      if (f.isDirectory()) {
        find(f, name, found);
      } else if (f.getName().equals(name)) {
        found.add(f);
      }
    }
  }
}
