package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream.SyncFlag;

/**
 * A stock client writes, appends, cuts off and moves a file, and of each call on its way one answer is lost after another:
 * it asks again, is told what it would have been told, and every byte is there.
 */
final class LostAnswerTests {
  private static final int BLOCK = 1 << 20;

  /** Calls that change nothing: asked again, they are answered again. */
  private static final Pattern READS = Pattern.compile("^(get|list|check|is|renewLease|msync)");

  private final DistributedFileSystem fs;
  private final boolean isStriped;
  private final boolean isGrouped;

  private LostAnswerTests(DistributedFileSystem fs, String policy) {
    this.fs = fs;
    isGrouped = policy != null && policy.endsWith("-contiguous");
    isStriped = policy != null && !isGrouped;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("lost-answers/")) {
      return;
    }
    Map<String, String> keys = new HashMap<>(x.keys());
    if (!x.target().isHadoop()) {
      keys.putAll(GroupTests.AT_ONCE);
      // Single blocks as well.
      keys.put("cairn.ec.contiguous.pays", "1000");
    }
    try (ClusterProcess cluster = new ClusterProcess(x.target(), new File(x.work(), "lost-answers"), 5, 1, keys);
        LosingProxy proxy = new LosingProxy(DFSUtilClient.getNNAddress(URI.create(cluster.uri())))) {
      of(x, cluster, proxy, "replicated", null);
      of(x, cluster, proxy, "striped", "RS-3-2-1024k");
      if (!x.target().isHadoop()) {
        of(x, cluster, proxy, "contiguous", "RS-3-2-contiguous");
      }
    }
  }

  private static void of(Main.Context x, ClusterProcess cluster, LosingProxy proxy, String name, String policy)
      throws Exception {
    Path root = new Path("/" + name);
    DistributedFileSystem direct = cluster.fs();
    direct.mkdirs(root);
    if (policy != null) {
      direct.enableErasureCodingPolicy(policy);
      direct.setErasureCodingPolicy(root, policy);
    }
    Configuration conf = cluster.conf();
    conf.setBoolean("dfs.client.retry.policy.enabled", true);
    conf.set("dfs.client.retry.policy.spec", "50,20");
    Map<String, Integer> counts = new HashMap<>();
    String first = "lost-answers/" + name + ": none";
    x.runner()
        .test(
            first,
            () -> {
              proxy.lose(null, 0);
              try (DistributedFileSystem fs = connect(proxy, conf)) {
                new LostAnswerTests(fs, policy).tell(new Path(root, "none"));
              }
              counts.putAll(proxy.counts());
            });
    for (String method : counts.keySet().stream().sorted().toList()) {
      if (READS.matcher(method).find()) {
        continue;
      }
      // Of the many alike the first ones say what the others would.
      for (int i = 0; i < Math.min(counts.get(method), x.full() ? 4 : 1); i++) {
        int skip = i;
        x.runner()
            .test(
                "lost-answers/" + name + ": " + method + " " + (i + 1),
                () -> {
                  try (DistributedFileSystem fs = connect(proxy, conf)) {
                    proxy.lose(method, skip);
                    new LostAnswerTests(fs, policy).tell(new Path(root, method + skip));
                  }
                  check(proxy.hasLost(), "an answer was lost");
                });
      }
    }
  }

  private static DistributedFileSystem connect(LosingProxy proxy, Configuration conf) throws IOException {
    return (DistributedFileSystem) FileSystem.newInstance(URI.create("hdfs://" + proxy.address()), conf);
  }

  private static byte[] bytes(int seed, int length) {
    byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  private static byte[] joined(byte[]... parts) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.write(part);
    }
    return all.toByteArray();
  }

  private void tell(Path folder) throws Exception {
    check(fs.mkdirs(folder), "mkdirs");
    fs.allowSnapshot(folder);
    Path file = new Path(folder, "f");
    byte[] written = bytes(1, BLOCK * 3 / 2);
    try (FSDataOutputStream out = fs.create(file, false, 4096, (short) 3, BLOCK)) {
      out.write(written, 0, 300_000);
      if (!isStriped) {
        out.hflush();
        out.write(written, 300_000, BLOCK);
        ((HdfsDataOutputStream) out).hsync(EnumSet.of(SyncFlag.UPDATE_LENGTH));
        out.write(written, 300_000 + BLOCK, written.length - BLOCK - 300_000);
      } else {
        out.write(written, 300_000, written.length - 300_000);
      }
    }
    expect(file, written);
    if (isGrouped) {
      Thread.sleep(2500);
    }

    byte[] appended = bytes(2, 100_000);
    EnumSet<CreateFlag> flags =
        isStriped ? EnumSet.of(CreateFlag.APPEND, CreateFlag.NEW_BLOCK) : EnumSet.of(CreateFlag.APPEND);
    try (OutputStream out = fs.append(file, flags, 4096, null)) {
      out.write(appended);
    }
    byte[] all = joined(written, appended);
    expect(file, all);

    if (!isStriped) {
      int cut = BLOCK + 77_777;
      if (!fs.truncate(file, cut)) {
        Runner.await("the file is cut off", () -> fs.isFileClosed(file));
      }
      all = Arrays.copyOf(all, cut);
      expect(file, all);
    }

    fs.createSnapshot(folder, "s0");
    fs.renameSnapshot(folder, "s0", "s1");
    Path second = new Path(folder, "g");
    byte[] more = bytes(3, 70_000);
    try (OutputStream out = fs.create(second, false, 4096, (short) 3, BLOCK)) {
      out.write(more);
    }
    Path sub = new Path(folder, "sub");
    check(fs.mkdirs(sub), "mkdirs");
    check(fs.rename(second, new Path(sub, "g")), "rename");
    fs.rename(new Path(sub, "g"), second, Options.Rename.OVERWRITE);
    fs.concat(file, new Path[] {second});
    all = joined(all, more);
    expect(file, all);
    if (!isStriped) {
      check(fs.setReplication(file, (short) 2), "setReplication");
    }

    // One writer goes away, and another one has the file closed.
    Path open = new Path(folder, "open");
    FSDataOutputStream left = fs.create(open, false, 4096, (short) 3, BLOCK);
    left.write(more);
    left.hflush();
    if (!fs.recoverLease(open)) {
      Runner.await("the lease is recovered", () -> fs.isFileClosed(open));
    }
    fs.getClient().closeAllFilesBeingWritten(true);

    check(fs.delete(open, false), "delete");
    check(fs.delete(file, false), "delete");
    fs.deleteSnapshot(folder, "s1");
    check(fs.delete(sub, true), "delete");
    equal(0, fs.listStatus(folder).length, "what is left");
    fs.disallowSnapshot(folder);
    check(fs.delete(folder, false), "delete");
  }

  private void expect(Path file, byte[] bytes) throws IOException {
    equal((long) bytes.length, fs.getFileStatus(file).getLen(), "length of " + file);
    byte[] read = new byte[bytes.length];
    try (FSDataInputStream in = fs.open(file)) {
      in.readFully(read);
      check(in.read() < 0, "the end of " + file);
    }
    check(Arrays.equals(bytes, read), "bytes of " + file);
  }
}
