package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DFSHedgedReadMetrics;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Readers that opened all files of a directory once, and read parts of them at random, asking a second DataNode where the
 * first one takes longer than half a second, as HBase does. Arguments: the file system, the directory, a local directory with
 * the same files, how many threads, and the length of a read. Prints a line when all files are open; then each line that comes
 * in is a number of seconds to read for, and is answered with what was read, in JSON.
 */
public final class HedgedReaders {
  private final List<FSDataInputStream> files = new ArrayList<>();
  private final List<byte[]> wanted = new ArrayList<>();
  private final int length;
  private final AtomicLong reads = new AtomicLong();
  private final AtomicLong failed = new AtomicLong();
  private final AtomicLong wrong = new AtomicLong();

  private HedgedReaders(int length) {
    this.length = length;
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set("fs.defaultFS", args[0]);
    conf.setInt("dfs.client.hedged.read.threadpool.size", 64);
    conf.setInt("dfs.client.hedged.read.threshold.millis", 500);
    try (DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(conf)) {
      HedgedReaders readers = new HedgedReaders(Integer.parseInt(args[4]));
      for (FileStatus status : fs.listStatus(new Path(args[1]))) {
        readers.files.add(fs.open(status.getPath()));
        readers.wanted.add(Files.readAllBytes(Paths.get(args[2], status.getPath().getName())));
      }
      System.out.println("open");
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        DFSHedgedReadMetrics hedges = hedges(fs);
        long before = hedges.getHedgedReadOps();
        Map<String, Object> told = readers.readFor(Integer.parseInt(args[3]), Double.parseDouble(line));
        told.put("hedged", hedges.getHedgedReadOps() - before);
        System.out.println(new ObjectMapper().writeValueAsString(told));
      }
    }
    System.exit(0);
  }

  /** Hadoop keeps them to itself. */
  private static DFSHedgedReadMetrics hedges(DistributedFileSystem fs) throws ReflectiveOperationException {
    Method kept = DFSClient.class.getDeclaredMethod("getHedgedReadMetrics");
    kept.setAccessible(true);
    return (DFSHedgedReadMetrics) kept.invoke(fs.getClient());
  }

  private Map<String, Object> readFor(int threads, double seconds) throws InterruptedException {
    reads.set(0);
    failed.set(0);
    wrong.set(0);
    long end = System.nanoTime() + (long) (seconds * 1e9);
    List<Thread> running = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      Random dice = new Random(i);
      Thread thread = new Thread(() -> {
        while (System.nanoTime() < end) {
          readOnce(dice);
        }
      });
      thread.start();
      running.add(thread);
    }
    for (Thread thread : running) {
      thread.join();
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("bytes", reads.get() * length);
    told.put("reads", reads.get());
    told.put("failed", failed.get());
    told.put("wrong", wrong.get());
    return told;
  }

  private void readOnce(Random dice) {
    int file = dice.nextInt(files.size());
    byte[] all = wanted.get(file);
    int at = dice.nextInt(all.length - length + 1);
    byte[] found = new byte[length];
    try {
      files.get(file).readFully(at, found);
    } catch (IOException error) {
      failed.incrementAndGet();
      return;
    }
    reads.incrementAndGet();
    if (!Arrays.equals(found, 0, length, all, at, at + length)) {
      wrong.incrementAndGet();
    }
  }
}
