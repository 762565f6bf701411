package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/**
 * Files that are cut off while snapshots have their blocks: each snapshot goes on to read what it saw, and quotas count
 * what there is. With DataNodes of the target, and with those of Cairn and of Hadoop together.
 */
final class TruncateTests {
  private static final int MIB = 1 << 20;
  private static final int COPIES = 2;

  private TruncateTests() {}

  static void run(Main.Context x) throws Exception {
    x.runner()
        .test(
            "truncate/inside and between blocks that snapshots have",
            () -> {
              File folder = new File(x.work(), "truncate");
              try (ClusterProcess cluster =
                  new ClusterProcess(x.target(), folder, COPIES, 1, x.keys(), "DISK")) {
                cluster.waitForLive(COPIES);
                new Story(cluster.fs()).tell();
              }
            });
    if (x.cairn() == null) {
      return;
    }
    for (boolean byCairn : new boolean[] {true, false}) {
      String who = byCairn ? "Cairn" : "Hadoop";
      x.runner()
          .test(
              "truncate/" + who + "'s NameNode with DataNodes of both",
              () -> {
                File folder = new File(x.work(), "truncate-" + who);
                try (Mixed mixed =
                    new Mixed(byCairn, x.cairn(), folder, COPIES / 2, Mixed.hasty(x.keys()))) {
                  new Story(mixed.fs()).tell();
                }
              });
    }
  }

  /** One file, what it should be, and what each snapshot should have. */
  private static final class Story {
    private final DistributedFileSystem fs;
    private final Path folder = new Path("/cut");
    private final Path file = new Path(folder, "f");
    private final Map<String, byte[]> taken = new LinkedHashMap<>();
    private byte[] now;

    Story(DistributedFileSystem fs) {
      this.fs = fs;
    }

    void tell() throws Exception {
      fs.mkdirs(folder);
      fs.allowSnapshot(folder);
      fs.setQuota(folder, HdfsConstants.QUOTA_DONT_SET, 1L << 40);
      now = bytes(1, 2 * MIB + MIB / 2);
      try (FSDataOutputStream out = fs.create(file, true, 4096, (short) COPIES, MIB)) {
        out.write(now);
      }
      check("three blocks", now.length);

      take("s");
      // Inside the second block: it is copied; the third one stays for the snapshot.
      cut(MIB + 300_001, false);
      check("the first cut", 2 * MIB + MIB / 2 + 300_001);
      // No snapshot has the copy, so it is cut in place.
      cut(MIB + 200_000, false);
      check("a cut in place", 2 * MIB + MIB / 2 + 200_000);

      take("t");
      cut(MIB + 100_003, false);
      append(50_000);
      check("an append to a copy", 2 * MIB + MIB / 2 + 200_000 + 150_003);

      take("u");
      cut(MIB, true);
      check("a cut between blocks", 2 * MIB + MIB / 2 + 200_000 + 150_003);
      append(77_777);
      check("an append after it", 2 * MIB + MIB / 2 + 200_000 + 150_003 + 77_777);

      giveUp("t");
      check("without the second snapshot", 2 * MIB + MIB / 2 + 150_003 + 77_777);
      giveUp("s");
      check("without the first one", MIB + 150_003 + 77_777);
      giveUp("u");
      check("without any", MIB + 77_777);
      cut(5, false);
      check("a cut that no snapshot sees", 5);
    }

    private void cut(int len, boolean isDone) throws Exception {
      equal(isDone, fs.truncate(file, len), "answer to a cut at " + len);
      now = Arrays.copyOf(now, len);
      Runner.await("the file is closed after a cut at " + len, () -> fs.isFileClosed(file));
    }

    private void append(int len) throws IOException {
      byte[] more = bytes(now.length, len);
      try (FSDataOutputStream out = fs.append(file)) {
        out.write(more);
      }
      int before = now.length;
      now = Arrays.copyOf(now, before + len);
      System.arraycopy(more, 0, now, before, len);
    }

    private void take(String name) throws IOException {
      fs.createSnapshot(folder, name);
      taken.put(name, now);
    }

    private void giveUp(String name) throws Exception {
      fs.deleteSnapshot(folder, name);
      taken.remove(name);
    }

    /** The file and all snapshots read as they should, and {@code space} bytes count, each as often as there are copies. */
    private void check(String when, long space) throws Exception {
      same(now, file, when);
      for (String name : taken.keySet()) {
        same(taken.get(name), new Path(folder, ".snapshot/" + name + "/f"), when);
      }
      equal(COPIES * space, fs.getQuotaUsage(folder).getSpaceConsumed(), "bytes that count, " + when);
      List<Long> blocks =
          fs.getClient().getLocatedBlocks(file.toUri().getPath(), 0).getLocatedBlocks().stream()
              .map(b -> b.getBlockSize())
              .toList();
      equal((long) now.length, blocks.stream().mapToLong(Long::longValue).sum(), "bytes of blocks, " + when);
    }

    private void same(byte[] wanted, Path path, String when) throws IOException {
      equal((long) wanted.length, fs.getFileStatus(path).getLen(), "length of " + path + ", " + when);
      ByteArrayOutputStream got = new ByteArrayOutputStream();
      try (InputStream in = fs.open(path)) {
        in.transferTo(got);
      }
      Runner.check(Arrays.equals(wanted, got.toByteArray()), "the bytes of " + path + ", " + when);
    }
  }

  private static byte[] bytes(long seed, int len) throws IOException {
    byte[] bytes = new byte[len];
    Runner.check(new Data.Source(seed, len).readNBytes(bytes, 0, len) == len, "bytes");
    return bytes;
  }
}
