package cairn.interop;

import static cairn.interop.Runner.await;
import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/** Files that are kept in memory first: how they come to the disk, and what becomes of them when memory is lost. */
final class LazyPersistTests {
  private static final int MIB = 1 << 20;
  private final Main.Context x;

  private LazyPersistTests(Main.Context x) {
    this.x = x;
  }

  static void run(Main.Context x) throws Exception {
    LazyPersistTests t = new LazyPersistTests(x);
    x.runner()
        .test(
            "lazy/a file comes to memory, is saved, and is read from the disk when another needs the memory",
            t::saved);
    x.runner()
        .test("lazy/a file that was only in memory is lost with it, and deleted", t::lost);
  }

  /** One DataNode with a disk and memory for two blocks. */
  private ClusterProcess cluster(String name, String interval, String scrub) throws Exception {
    Map<String, String> keys = x.keys();
    keys.put("dfs.datanode.max.locked.memory", "" + 2 * MIB);
    keys.put("dfs.datanode.lazywriter.interval.sec", interval);
    keys.put("dfs.namenode.lazypersist.file.scrub.interval.sec", scrub);
    // Hadoop looks so often for storages that are gone.
    keys.put("dfs.namenode.heartbeat.recheck-interval", "2000");
    return new ClusterProcess(x.target(), new File(x.work(), name), 1, 1, keys, "DISK,RAM_DISK");
  }

  private void saved() throws Exception {
    try (ClusterProcess cluster = cluster("lazy-saved", "1", "300")) {
      DistributedFileSystem fs = cluster.fs();
      Path byFlag = new Path("/flag");
      Path byPolicy = new Path("/policy/file");
      fs.mkdirs(byPolicy.getParent());
      fs.setStoragePolicy(byPolicy.getParent(), "LAZY_PERSIST");
      Path tooLarge = new Path("/large");
      store(fs, tooLarge, true, 4 * MIB);
      waitFor(fs, tooLarge, StorageType.DISK);
      store(fs, byFlag, true, MIB);
      store(fs, byPolicy, false, MIB);
      for (Path path : List.of(byFlag, byPolicy)) {
        equal("LAZY_PERSIST", fs.getStoragePolicy(path).getName(), "policy of " + path);
        waitFor(fs, path, StorageType.RAM_DISK);
        long id = block(fs, path).getBlock().getBlockId();
        await("a saved copy of " + path, () -> holds("lazy-saved", "lazypersist", "blk_" + id));
      }
      // What is read stays longer.
      verify(fs, byFlag, MIB);
      Path third = new Path("/third");
      store(fs, third, true, MIB);
      waitFor(fs, third, StorageType.RAM_DISK);
      waitFor(fs, byPolicy, StorageType.DISK);
      waitFor(fs, byFlag, StorageType.RAM_DISK);
      long evicted = block(fs, byPolicy).getBlock().getBlockId();
      check(holds("lazy-saved", "finalized", "blk_" + evicted), "the evicted block is finalized");
      for (Path path : List.of(byFlag, byPolicy, third)) {
        verify(fs, path, MIB);
      }
      verify(fs, tooLarge, 4 * MIB);
      refused(() -> fs.append(byFlag).close(), "Cannot append to lazy persist file /flag");
      refused(() -> fs.truncate(byFlag, 0), "Cannot truncate lazy persist file /flag");
      long saved = block(fs, third).getBlock().getBlockId();
      await("a saved copy of " + third, () -> holds("lazy-saved", "lazypersist", "blk_" + saved));
      loseMemory(cluster);
      for (Path path : List.of(byFlag, byPolicy, third)) {
        waitFor(fs, path, StorageType.DISK);
        verify(fs, path, MIB);
      }
    }
  }

  private void lost() throws Exception {
    try (ClusterProcess cluster = cluster("lazy-lost", "3600", "1")) {
      DistributedFileSystem fs = cluster.fs();
      Path lazy = new Path("/lazy");
      Path kept = new Path("/kept");
      store(fs, lazy, true, MIB);
      store(fs, kept, false, MIB);
      waitFor(fs, lazy, StorageType.RAM_DISK);
      waitFor(fs, kept, StorageType.DISK);
      // Memory that outlives the DataNode still has it.
      cluster.killDataNode(0);
      cluster.startDataNode(0);
      await("the DataNode", () -> cluster.live() == 1);
      verify(fs, lazy, MIB);

      Path second = new Path("/second");
      store(fs, second, true, MIB);
      waitFor(fs, second, StorageType.RAM_DISK);
      loseMemory(cluster);
      await("the end of what was lost", () -> !fs.exists(second));
      verify(fs, kept, MIB);
    }
  }

  /** Restarts the DataNode, as it would come back with its machine. */
  private static void loseMemory(ClusterProcess cluster) throws Exception {
    cluster.killDataNode(0);
    // Hadoop's DataNode leaves a list when it stops in order, believes it, and finds nothing else.
    File data = new File(cluster.describe().path("datanodes").path(0).path("data").asText());
    try (Stream<java.nio.file.Path> files = Files.walk(data.getParentFile().toPath())) {
      for (var list : files.filter(f -> f.endsWith("replicas")).toList()) {
        Files.delete(list);
      }
    }
    for (var volume : cluster.describe().path("datanodes").path(0).path("volumes")) {
      if (volume.path("type").asText().equals("RAM_DISK")) {
        FileUtil.fullyDelete(new File(volume.path("path").asText()));
      }
    }
    cluster.startDataNode(0);
    await("the DataNode", () -> cluster.live() == 1);
  }

  private static void store(DistributedFileSystem fs, Path path, boolean isLazy, int len)
      throws IOException {
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.CREATE);
    if (isLazy) {
      flags.add(CreateFlag.LAZY_PERSIST);
    }
    FsPermission permission = FsPermission.getFileDefault();
    try (FSDataOutputStream out = fs.create(path, permission, flags, 4096, (short) 1, len, null)) {
      out.write(bytes(path, len));
    }
  }

  private static void verify(DistributedFileSystem fs, Path path, int len) throws IOException {
    byte[] got = new byte[len];
    try (FSDataInputStream in = fs.open(path)) {
      in.readFully(0, got);
    }
    check(java.util.Arrays.equals(bytes(path, len), got), "the bytes of " + path);
  }

  private static byte[] bytes(Path path, int len) {
    byte[] bytes = new byte[len];
    new Random(path.toString().hashCode()).nextBytes(bytes);
    return bytes;
  }

  private static LocatedBlock block(DistributedFileSystem fs, Path path) throws IOException {
    return fs.getClient().getLocatedBlocks(path.toString(), 0).get(0);
  }

  private static List<StorageType> types(DistributedFileSystem fs, Path path) throws IOException {
    return List.of(block(fs, path).getStorageTypes());
  }

  private static void waitFor(DistributedFileSystem fs, Path path, StorageType type)
      throws Exception {
    await(path + " on " + type, () -> types(fs, path).equals(List.of(type)));
  }

  /** Whether a file of that name is below a folder of that name in a cluster's files. */
  private boolean holds(String cluster, String folder, String name) throws IOException {
    try (Stream<java.nio.file.Path> files = Files.walk(new File(x.work(), cluster).toPath())) {
      return files.anyMatch(
          f -> f.endsWith(name) && Stream.of(f.toString().split("/")).anyMatch(folder::equals));
    } catch (java.io.UncheckedIOException e) {
      // A file went away meanwhile.
      return false;
    }
  }

  private interface Call {
    void run() throws Exception;
  }

  private static void refused(Call call, String message) throws Exception {
    try {
      call.run();
    } catch (Exception e) {
      check(e.toString().contains("UnsupportedOperationException"), e.toString());
      check(e.toString().contains(message), e.toString());
      return;
    }
    throw new IOException("not refused: " + message);
  }
}
