package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.ReadOption;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.ReadStatistics;
import org.apache.hadoop.hdfs.client.HdfsDataInputStream;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveInfo;
import org.apache.hadoop.hdfs.protocol.CachePoolInfo;
import org.apache.hadoop.hdfs.shortcircuit.ShortCircuitCache;
import org.apache.hadoop.io.ElasticByteBufferPool;
import org.apache.hadoop.io.nativeio.NativeIO;
import org.apache.hadoop.net.unix.DomainSocket;

/** A client that runs with Hadoop's native code; see {@link ShortCircuitTests}. Prints what is wrong, and ends with 1. */
public final class ShortCircuitClient {
  private static final int LENGTH = 3 << 20;
  private static final long PATIENCE_MS = 30_000;

  private final Configuration base;

  private ShortCircuitClient(Configuration base) {
    this.base = base;
  }

  public static void main(String[] args) {
    try {
      // Descriptors can be received once this class is there.
      check(NativeIO.isAvailable(), "there is no native code");
      check(DomainSocket.getLoadingFailureReason() == null, DomainSocket.getLoadingFailureReason());
      Configuration conf = new HdfsConfiguration();
      conf.addResource(new Path(args[0], "core-site.xml"));
      conf.addResource(new Path(args[0], "hdfs-site.xml"));
      conf.set("dfs.domain.socket.path", args[1]);
      // The native code of groups is not needed.
      conf.set("hadoop.security.group.mapping", "org.apache.hadoop.security.ShellBasedUnixGroupsMapping");
      new ShortCircuitClient(conf).run();
      System.exit(0);
    } catch (Throwable e) {
      System.out.println(e);
      e.printStackTrace();
      System.exit(1);
    }
  }

  private DistributedFileSystem fs(String context, boolean shortCircuit, boolean traffic) throws IOException {
    Configuration conf = Target.impatient(new Configuration(base));
    conf.setBoolean("dfs.client.read.shortcircuit", shortCircuit);
    conf.setBoolean("dfs.client.domain.socket.data.traffic", traffic);
    conf.setLong("dfs.client.read.shortcircuit.streams.cache.expiry.ms", 500);
    conf.setLong("dfs.client.mmap.cache.timeout.ms", 500);
    conf.set("dfs.client.context", context);
    return (DistributedFileSystem) FileSystem.newInstance(conf);
  }

  private void run() throws Exception {
    DistributedFileSystem fs = fs("short", true, false);
    Path plain = new Path("/plain");
    Path striped = new Path("/ec/file");
    fs.mkdirs(striped.getParent());
    fs.enableErasureCodingPolicy("RS-3-2-1024k");
    fs.setErasureCodingPolicy(striped.getParent(), "RS-3-2-1024k");
    write(fs, plain);
    write(fs, striped);
    for (Path path : new Path[] {plain, striped}) {
      ReadStatistics read = read(fs, path);
      equal((long) LENGTH, read.getTotalShortCircuitBytesRead(), "bytes of " + path + " read through descriptors");
    }
    ShortCircuitCache cache = fs.getClient().getClientContext().getShortCircuitCache(0);
    check(segments(cache) > 0, "memory is shared with a DataNode");
    withoutCopying(fs, plain, EnumSet.of(ReadOption.SKIP_CHECKSUMS));

    fs.addCachePool(new CachePoolInfo("pool"));
    fs.addCacheDirective(new CacheDirectiveInfo.Builder().setPool("pool").setPath(plain).build());
    await("a replica in memory", () -> fs.getFileBlockLocations(plain, 0, LENGTH)[0].getCachedHosts().length > 0);
    // Without reading around checksums: only what the DataNode holds in memory can be had so.
    withoutCopying(fs, plain, EnumSet.noneOf(ReadOption.class));
    await("all slots released", () -> segments(cache) == 0);

    ReadStatistics traffic = read(fs("traffic", false, true), plain);
    equal(0L, traffic.getTotalShortCircuitBytesRead(), "bytes read through descriptors");
    equal((long) LENGTH, traffic.getTotalLocalBytesRead(), "bytes read from this machine");
    fs.delete(plain, false);
    fs.close();
  }

  private static void write(DistributedFileSystem fs, Path path) throws IOException {
    byte[] bytes = bytes();
    try (FSDataOutputStream out = fs.create(path, true, 4096, (short) 1, LENGTH)) {
      out.write(bytes);
    }
  }

  private static byte[] bytes() {
    byte[] bytes = new byte[LENGTH];
    new Random(7).nextBytes(bytes);
    return bytes;
  }

  private static ReadStatistics read(DistributedFileSystem fs, Path path) throws IOException {
    byte[] back = new byte[LENGTH];
    try (FSDataInputStream in = fs.open(path)) {
      in.readFully(0, back, 0, LENGTH / 2);
      in.seek(LENGTH / 2);
      in.readFully(back, LENGTH / 2, LENGTH / 2);
      check(java.util.Arrays.equals(bytes(), back), "bytes of " + path);
      return ((HdfsDataInputStream) in).getReadStatistics();
    }
  }

  private static void withoutCopying(DistributedFileSystem fs, Path path, EnumSet<ReadOption> how) throws Exception {
    ElasticByteBufferPool pool = new ElasticByteBufferPool();
    try (FSDataInputStream in = fs.open(path)) {
      ByteBuffer mapped = in.read(pool, 1 << 20, how);
      byte[] got = new byte[mapped.remaining()];
      mapped.get(got);
      check(java.util.Arrays.equals(java.util.Arrays.copyOf(bytes(), got.length), got), "bytes mapped");
      in.releaseBuffer(mapped);
      long zero = ((HdfsDataInputStream) in).getReadStatistics().getTotalZeroCopyBytesRead();
      equal((long) got.length, zero, "bytes read without copying, " + how);
    }
  }

  private static int segments(ShortCircuitCache cache) throws IOException {
    AtomicInteger count = new AtomicInteger();
    cache
        .getDfsClientShmManager()
        .visit(
            all ->
                all.values()
                    .forEach(
                        node -> {
                          check(!node.disabled, "the DataNode shares memory");
                          count.addAndGet(node.full.size() + node.notFull.size());
                        }));
    return count.get();
  }

  private static void await(String what, Callable<Boolean> isSo) throws Exception {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (!isSo.call()) {
      check(System.currentTimeMillis() < end, "there is never " + what);
      Thread.sleep(100);
    }
  }
}
