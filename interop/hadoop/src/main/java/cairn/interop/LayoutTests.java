package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.server.datanode.BlockMetadataHeader;
import org.apache.hadoop.hdfs.util.StripedBlockUtil;
import org.apache.hadoop.util.DataChecksum;

/** Where blocks go: over nodes and racks, into which files of a DataNode, and away again after a delete. */
final class LayoutTests {
  private static final int MIB = 1 << 20;

  private final Runner runner;
  private final ClusterProcess cluster;

  private LayoutTests(Runner runner, ClusterProcess cluster) {
    this.runner = runner;
    this.cluster = cluster;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("layout/")) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), "layout"), 15, 5, x.keys())) {
      FileTests.makeFolders(cluster.fs(), "/layout");
      LayoutTests t = new LayoutTests(x.runner(), cluster);
      FileTests.redundancies().forEach(t::placement);
      FileTests.redundancies().keySet().forEach(t::onDisk);
      t.deletion();
    }
  }

  private static List<LocatedBlock> blocks(DistributedFileSystem fs, Path path) throws IOException {
    return fs.getClient()
        .getLocatedBlocks(path.toUri().getPath(), 0, Long.MAX_VALUE)
        .getLocatedBlocks();
  }

  private void placement(String name, ErasureCodingPolicy policy) {
    runner.test(
        "layout/placement/" + name + " is on different nodes and the right number of racks",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          int units = policy == null ? 3 : policy.getNumDataUnits() + policy.getNumParityUnits();
          for (int i = 0; i < 10; i++) {
            Path path = new Path("/layout/" + name, "p" + i);
            FileTests.store(fs, path, i, 3 * MIB, 128 * MIB);
            int wanted =
                policy == null ? 3 : Math.min(units, dataUnitsOf(policy, 3 * MIB) + policy.getNumParityUnits());
            // A file is complete before all of it is reported.
            Runner.await(
                wanted + " locations of " + path, () -> blocks(fs, path).get(0).getLocations().length == wanted);
            DatanodeInfo[] nodes = blocks(fs, path).get(0).getLocations();
            equal(wanted, nodes.length, "locations of " + path);
            Map<String, Integer> racks = new HashMap<>();
            Set<String> distinct = new HashSet<>();
            for (DatanodeInfo n : nodes) {
              racks.merge(n.getNetworkLocation(), 1, Integer::sum);
              distinct.add(n.getDatanodeUuid());
            }
            equal(nodes.length, distinct.size(), "different nodes of " + path);
            if (policy == null) {
              equal(2, racks.size(), "racks of " + path);
            } else {
              int most = (units + 4) / 5;
              racks.forEach((rack, n) -> check(n <= most, path + " has " + n + " units in " + rack));
            }
          }
        });
  }

  /** How many data units of a short group hold any bytes. */
  private static int dataUnitsOf(ErasureCodingPolicy policy, long length) {
    long cells = (length + policy.getCellSize() - 1) / policy.getCellSize();
    return (int) Math.min(cells, policy.getNumDataUnits());
  }

  private File dataDir(DatanodeInfo node) {
    int i = cluster.indexOf(node);
    return new File(cluster.describe().path("datanodes").get(i).path("data").asText());
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

  /** Finds every replica of a file on disk by Hadoop's naming rule and checks its bytes against its own meta file. */
  private void onDisk(String name) {
    runner.test(
        "layout/on disk/" + name + " has Hadoop's file names, lengths and checksums",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          Path path = new Path("/layout/" + name, "disk");
          FileTests.store(fs, path, 40, 9 * MIB + 777, 2 * MIB);
          int seen = 0;
          for (LocatedBlock block : blocks(fs, path)) {
            DatanodeInfo[] nodes = block.getLocations();
            for (int i = 0; i < nodes.length; i++) {
              ExtendedBlock b = block.getBlock();
              if (block instanceof LocatedStripedBlock group) {
                ErasureCodingPolicy p = fs.getErasureCodingPolicy(path);
                b =
                    StripedBlockUtil.constructInternalBlock(
                        b, p.getCellSize(), p.getNumDataUnits(), group.getBlockIndices()[i]);
              }
              replica(dataDir(nodes[i]), b);
              seen++;
            }
          }
          check(seen >= 3, "replicas looked at: " + seen);
        });
  }

  private static void replica(File dir, ExtendedBlock b) throws IOException {
    List<File> data = new ArrayList<>();
    find(dir, b.getBlockName(), data);
    equal(1, data.size(), b.getBlockName() + " under " + dir);
    File file = data.get(0);
    long id = b.getBlockId();
    String place =
        String.format(
            "current/%s/current/finalized/subdir%d/subdir%d/%s",
            b.getBlockPoolId(), id >> 16 & 0x1F, id >> 8 & 0x1F, b.getBlockName());
    check(file.getPath().endsWith(place), file + " is not at " + place);
    equal(b.getNumBytes(), file.length(), "length of " + file);
    File meta = new File(file.getPath() + "_" + b.getGenerationStamp() + ".meta");
    try (DataInputStream sums = new DataInputStream(new FileInputStream(meta));
        FileInputStream bytes = new FileInputStream(file)) {
      BlockMetadataHeader header = BlockMetadataHeader.readHeader(sums);
      equal((short) 1, header.getVersion(), "version of " + meta);
      DataChecksum checksum = header.getChecksum();
      equal(DataChecksum.Type.CRC32C, checksum.getChecksumType(), "type in " + meta);
      equal(512, checksum.getBytesPerChecksum(), "chunk length in " + meta);
      byte[] d = bytes.readAllBytes();
      byte[] s = sums.readAllBytes();
      equal((d.length + 511) / 512 * 4, s.length, "checksum bytes in " + meta);
      checksum.verifyChunkedSums(ByteBuffer.wrap(d), ByteBuffer.wrap(s), file.getPath(), 0);
    }
  }

  private void deletion() {
    for (String name : List.of("RS-6-3-1024k", "3x")) {
      runner.test(
          "layout/a deleted file leaves the disks/" + name,
          () -> {
            DistributedFileSystem fs = cluster.fs();
            Path path = new Path("/layout/" + name, "gone");
            FileTests.store(fs, path, 41, 20 * MIB, 128 * MIB);
            List<File> dirs = new ArrayList<>();
            List<String> names = new ArrayList<>();
            LocatedBlock block = blocks(fs, path).get(0);
            for (int i = 0; i < block.getLocations().length; i++) {
              long id = block.getBlock().getBlockId();
              if (block instanceof LocatedStripedBlock group) {
                id += group.getBlockIndices()[i];
              }
              dirs.add(dataDir(block.getLocations()[i]));
              names.add("blk_" + id);
            }
            equal(dirs.size(), present(dirs, names), "replicas before");
            fs.delete(path, false);
            Runner.await("all replicas are deleted", () -> present(dirs, names) == 0);
          });
    }
  }

  private static int present(List<File> dirs, List<String> names) {
    List<File> found = new ArrayList<>();
    for (int i = 0; i < dirs.size(); i++) {
      find(dirs.get(i), names.get(i), found);
    }
    return found.size();
  }
}
