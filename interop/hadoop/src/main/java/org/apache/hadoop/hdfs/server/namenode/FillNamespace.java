package org.apache.hadoop.hdfs.server.namenode;

import java.io.File;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.permission.PermissionStatus;
import org.apache.hadoop.hdfs.DFSConfigKeys;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.Block;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockIdManager;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockInfoContiguous;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockInfoStriped;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants.NamenodeRole;
import org.apache.hadoop.hdfs.server.namenode.FSDirectory.DirOp;
import org.apache.hadoop.hdfs.util.RwLockMode;

/**
 * Fills the directory of a real Hadoop NameNode with the files that the example {@code fill} of cairn-namenode makes
 * for Cairn's: same paths, owners and modes, same ids and stamps of blocks. They are made in memory, as a NameNode
 * does that reads its log, and Hadoop itself saves them as its image, so that a start finds a checkpoint and no log
 * behind it. It is in Hadoop's package for the sake of what is not public there.
 *
 * <pre>
 * FillNamespace DIR COPIES|POLICY ROUND FILES [ROUND FILES]...
 * </pre>
 *
 * COPIES 0 makes empty files. Prints one line of JSON.
 */
public final class FillNamespace {
  private static final int FOLDER = 1000;
  private static final long UNIT_LEN = 1 << 20;
  private static final long FIRST_GROUP_BASE = Long.MIN_VALUE;
  private static final long GROUP_IDS = 16;
  private static final long LAST_RESERVED_BLOCK = 1L << 30;
  private static final long LAST_RESERVED_STAMP = 1000;
  private static final long BLOCK_SIZE = 128L << 20;

  private final FSNamesystem ns;
  private final FSDirectory tree;
  private final short copies;
  private final ErasureCodingPolicy policy;
  private final long now = System.currentTimeMillis();
  private long blocks;

  private FillNamespace(FSNamesystem ns, String shape) {
    this.ns = ns;
    tree = ns.getFSDirectory();
    boolean isNumber = shape.chars().allMatch(Character::isDigit);
    copies = isNumber ? Short.parseShort(shape) : 3;
    policy = isNumber ? null : ns.getErasureCodingPolicyManager().getByName(shape);
    if (!isNumber && policy == null) {
      throw new IllegalArgumentException(shape + " is neither a number nor a policy");
    }
  }

  private static PermissionStatus permission(int mode) {
    return new PermissionStatus("load", "load", new FsPermission((short) mode));
  }

  private void mkdir(String path) throws Exception {
    if (tree.getINode(path) == null) {
      FSDirMkdirOp.mkdirForEditLog(tree, tree.allocateNewInodeId(), path, permission(0777), null, now);
    }
  }

  private void addFile(INodesInPath folder, String name) {
    INodeFile file =
        FSDirWriteFileOp.addFileForEditLog(
            tree, tree.allocateNewInodeId(), folder, name.getBytes(StandardCharsets.UTF_8),
            permission(0644), null, null, copies == 0 ? 3 : copies, now, now, BLOCK_SIZE, false, "", "", (byte) 0,
            policy == null ? 0 : policy.getId());
    if (copies == 0) {
      return;
    }
    blocks++;
    long stamp = LAST_RESERVED_STAMP + blocks;
    BlockInfo block;
    if (policy == null) {
      block = new BlockInfoContiguous(new Block(LAST_RESERVED_BLOCK + blocks, UNIT_LEN, stamp), copies);
    } else {
      long length = UNIT_LEN * policy.getNumDataUnits();
      block = new BlockInfoStriped(new Block(FIRST_GROUP_BASE + GROUP_IDS * blocks, length, stamp), policy);
    }
    ns.getBlockManager().addBlockCollection(block, file);
    file.addBlock(block);
  }

  private void round(String round, long files) throws Exception {
    String base = "/load/r" + round;
    mkdir("/load");
    mkdir(base);
    INodesInPath folder = null;
    for (long number = 0; number < files; number++) {
      if (number % FOLDER == 0) {
        String path = base + "/d" + number / FOLDER;
        mkdir(path);
        folder = tree.getINodesInPath(path, DirOp.READ);
      }
      addFile(folder, "f" + number);
      if (number % 1_000_000 == 999_999) {
        System.err.println(base + ": " + (number + 1) + " files");
      }
    }
  }

  public static void main(String[] args) throws Exception {
    long begin = System.nanoTime();
    Configuration conf = new HdfsConfiguration();
    conf.set(DFSConfigKeys.FS_DEFAULT_NAME_KEY, "hdfs://127.0.0.1:8020");
    conf.set(DFSConfigKeys.DFS_NAMENODE_NAME_DIR_KEY, new File(args[0]).toURI().toString());
    // Sections of the image that several threads can load.
    conf.setBoolean(DFSConfigKeys.DFS_IMAGE_PARALLEL_LOAD_KEY, true);
    NameNode.initMetrics(conf, NamenodeRole.NAMENODE);
    NameNode.format(conf);
    FSNamesystem ns = FSNamesystem.loadFromDisk(conf);
    FillNamespace fill = new FillNamespace(ns, args[1]);
    long files = 0;
    ns.writeLock(RwLockMode.GLOBAL);
    try {
      for (int i = 2; i + 1 < args.length; i += 2) {
        fill.round(args[i], Long.parseLong(args[i + 1]));
        files += Long.parseLong(args[i + 1]);
      }
    } finally {
      ns.writeUnlock(RwLockMode.GLOBAL, "fill");
    }
    BlockIdManager ids = ns.getBlockManager().getBlockIdManager();
    if (fill.policy == null) {
      ids.setLastAllocatedContiguousBlockId(LAST_RESERVED_BLOCK + fill.blocks);
    } else if (fill.blocks > 0) {
      ids.setLastAllocatedStripedBlockId(FIRST_GROUP_BASE + GROUP_IDS * fill.blocks);
    }
    ids.setGenerationStampIfGreater(LAST_RESERVED_STAMP + fill.blocks);
    ns.getFSImage().saveNamespace(ns);
    ns.getFSImage().close();
    System.out.printf("{\"files\":%d,\"seconds\":%.1f}%n", files, (System.nanoTime() - begin) / 1e9);
    System.exit(0);
  }
}
