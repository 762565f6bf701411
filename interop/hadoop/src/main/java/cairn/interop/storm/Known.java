package cairn.interop.storm;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.util.StripedBlockUtil;

/** What the NameNode knows at one moment: all blocks of all files and snapshots, and DataNodes. */
final class Known {
  /**
   * A block or group.
   *
   * @param file the number of its file, which is the same in snapshots
   * @param wanted how many replicas or units it should have at least
   * @param needed how many of them are enough
   * @param isComplete whether nobody writes to it
   */
  record Block(
      long id,
      long file,
      String path,
      ErasureCodingPolicy policy,
      int wanted,
      int needed,
      long stamp,
      long length,
      boolean isComplete,
      Set<Part> parts) {
    /** The bytes of a unit, or of a replica. */
    long length(int unit) {
      return policy == null
          ? length
          : StripedBlockUtil.getInternalBlockLength(
              length, policy.getCellSize(), policy.getNumDataUnits(), unit);
    }

    /** The width of a group; 1 for a block of replicas. */
    int units() {
      return policy == null ? 1 : policy.getNumDataUnits() + policy.getNumParityUnits();
    }

    /** Whether a group has that unit: those of a short one without bytes are not stored. */
    boolean has(int unit) {
      return policy == null || unit >= policy.getNumDataUnits() || length(unit) > 0;
    }

    /** Whether a replica or unit has all that it should have. */
    boolean isWhole(Disks.Replica r) {
      return isComplete
          ? r.isFinalized && r.stamp == stamp && r.isGood(length(Part.unit(r.id)))
          : policy == null && r.stamp >= stamp && r.isGood(0);
    }
  }

  final Map<Long, Block> blocks = new HashMap<>();

  /** The most replicas that a file or any snapshot of it asks for, which also blocks may have that only snapshots have. */
  final Map<Long, Integer> copies = new HashMap<>();

  final Set<Integer> live = new HashSet<>();

  /** DataNodes whose replicas do not count any more. */
  final Set<Integer> decommissioned = new HashSet<>();

  private final Cluster cluster;

  /** Asks for the blocks of {@code folders} and of their snapshots. */
  Known(Cluster cluster, DistributedFileSystem fs, List<String> folders) throws IOException {
    this.cluster = cluster;
    DFSClient client = fs.getClient();
    for (String folder : folders) {
      // In this order: what is deleted meanwhile may be in a snapshot.
      list(client, folder);
      for (HdfsFileStatus s : entries(client, folder + "/.snapshot", false)) {
        list(client, folder + "/.snapshot/" + s.getLocalName());
      }
    }
    for (DatanodeInfo info : fs.getDataNodeStats(DatanodeReportType.LIVE)) {
      live.add(cluster.indexOf(info));
      if (info.isDecommissioned()) {
        decommissioned.add(cluster.indexOf(info));
      }
    }
  }

  static List<HdfsFileStatus> entries(DFSClient client, String folder, boolean located) throws IOException {
    List<HdfsFileStatus> all = new ArrayList<>();
    byte[] after = HdfsFileStatus.EMPTY_NAME;
    DirectoryListing page;
    do {
      page = client.listPaths(folder, after, located);
      if (page == null) {
        throw new FileNotFoundException(folder);
      }
      all.addAll(List.of(page.getPartialListing()));
      after = page.getLastName();
    } while (page.hasMore());
    return all;
  }

  private void list(DFSClient client, String folder) throws IOException {
    try {
      for (HdfsFileStatus s : entries(client, folder, true)) {
        if (s instanceof HdfsLocatedFileStatus file && file.getLocatedBlocks() != null) {
          add(folder + "/" + s.getLocalName(), s, file.getLocatedBlocks());
        }
      }
    } catch (FileNotFoundException e) {
      // A snapshot that was deleted meanwhile.
      if (!folder.contains("/.snapshot/")) {
        throw e;
      }
    }
  }

  private void add(String path, HdfsFileStatus status, LocatedBlocks located) {
    copies.merge(status.getFileId(), (int) status.getReplication(), Math::max);
    ErasureCodingPolicy policy = status.getErasureCodingPolicy();
    List<LocatedBlock> all = located.getLocatedBlocks();
    for (int i = 0; i < all.size(); i++) {
      LocatedBlock b = all.get(i);
      boolean isLast = i + 1 == all.size();
      boolean isComplete =
          !located.isUnderConstruction() || !isLast || located.isLastBlockComplete();
      Set<Part> parts = new HashSet<>();
      DatanodeInfo[] at = b.getLocations();
      for (int p = 0; p < at.length; p++) {
        int node = cluster.indexOf(at[p]);
        long id = b.getBlock().getBlockId();
        if (b instanceof LocatedStripedBlock striped) {
          id += striped.getBlockIndices()[p];
        }
        if (node >= 0) {
          parts.add(new Part(id, node));
        }
      }
      int wanted = policy == null ? status.getReplication() : units(policy, b.getBlockSize());
      int needed = policy == null ? 1 : units(policy, b.getBlockSize()) - policy.getNumParityUnits();
      Block block =
          new Block(
              b.getBlock().getBlockId(),
              status.getFileId(),
              path,
              policy,
              wanted,
              needed,
              b.getBlock().getGenerationStamp(),
              b.getBlockSize(),
              isComplete,
              parts);
      blocks.merge(block.id, block, Known::join);
    }
  }

  /** A block of a file and of snapshots: the longest of it, and the most replicas that any of them asks for. */
  private static Block join(Block a, Block b) {
    Block main = a.length >= b.length ? a : b;
    int wanted = Math.max(a.wanted, b.wanted);
    return new Block(
        a.id, a.file, main.path, a.policy, wanted, a.needed, main.stamp, main.length, a.isComplete && b.isComplete, main.parts);
  }

  /** The units of a group that are stored: cells without bytes are not. */
  private static int units(ErasureCodingPolicy policy, long length) {
    long cells = (length + policy.getCellSize() - 1) / policy.getCellSize();
    return (int) Math.min(policy.getNumDataUnits(), cells) + policy.getNumParityUnits();
  }
}
