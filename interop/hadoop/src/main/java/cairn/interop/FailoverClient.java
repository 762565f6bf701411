package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Writes files one after the other, and reads the last of them again and again, until its standard input ends or says
 * {@code stop}; then reads all back whose close came to its end, and tells how many there were and how many are lost. With
 * each line of JSON it tells the longest time between two successes since the line before; any other word on its standard
 * input asks for such a line. Its arguments are the folder of the configuration, how to fail over, the folder of the files
 * and, if it is to rest after each file, for how many ms.
 */
public final class FailoverClient {
  private static final long READ_PAUSE_MS = 5;

  private final FileSystem fs;
  private final Path folder;
  private final long restMs;
  private final Gap writes = new Gap();
  private final Gap reads = new Gap();
  private volatile int acknowledged;
  private volatile boolean stops;
  private int writeErrors;
  private int readErrors;

  private FailoverClient(FileSystem fs, Path folder, long restMs) {
    this.fs = fs;
    this.folder = folder;
    this.restMs = restMs;
  }

  /** The longest time between two successes. */
  private static final class Gap {
    private long last = System.nanoTime();
    private long longest;

    synchronized void ends() {
      long now = System.nanoTime();
      longest = Math.max(longest, now - last);
      last = now;
    }

    /** In milliseconds, the one that has not ended included; begins anew. */
    synchronized long take() {
      long taken = Math.max(longest, System.nanoTime() - last);
      longest = 0;
      return taken / 1_000_000;
    }
  }

  private static long length(int number) {
    return 1000 + 7919L * number % 300_000;
  }

  private Path path(int number) {
    return new Path(folder, "" + number);
  }

  private boolean isWhole(int number) {
    try (InputStream in = fs.open(path(number))) {
      if (!Data.digest(number, length(number)).equals(Data.digest(in))) {
        throw new IOException("other bytes");
      }
      return true;
    } catch (IOException e) {
      System.err.println("file " + number);
      e.printStackTrace();
      return false;
    }
  }

  private void write() {
    while (!stops) {
      try {
        Thread.sleep(restMs);
      } catch (InterruptedException e) {
        return;
      }
      try (OutputStream out = fs.create(path(acknowledged), true)) {
        Data.copy(new Data.Source(acknowledged, length(acknowledged)), out);
      } catch (IOException e) {
        e.printStackTrace();
        writeErrors++;
        continue;
      }
      writes.ends();
      acknowledged = acknowledged + 1;
    }
  }

  private void read() {
    while (!stops) {
      try {
        Thread.sleep(READ_PAUSE_MS);
      } catch (InterruptedException e) {
        return;
      }
      int number = acknowledged - 1;
      if (number < 0) {
        continue;
      }
      if (isWhole(number)) {
        reads.ends();
      } else {
        readErrors++;
      }
    }
  }

  private Map<String, Object> gaps() {
    Map<String, Object> gaps = new LinkedHashMap<>();
    gaps.put("write_gap_ms", writes.take());
    gaps.put("read_gap_ms", reads.take());
    return gaps;
  }

  private static void tell(Map<String, Object> told) throws IOException {
    System.out.println(new ObjectMapper().writeValueAsString(told));
    System.out.flush();
  }

  private void run() throws Exception {
    fs.mkdirs(folder);
    System.out.println("writes");
    System.out.flush();
    Thread writer = new Thread(this::write);
    Thread reader = new Thread(this::read);
    writer.start();
    reader.start();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String word = in.readLine(); word != null && !word.equals("stop"); word = in.readLine()) {
      tell(gaps());
    }
    Map<String, Object> told = gaps();
    stops = true;
    writer.join();
    reader.join();
    int lost = 0;
    for (int i = 0; i < acknowledged; i++) {
      lost += isWhole(i) ? 0 : 1;
    }
    told.put("acknowledged", acknowledged);
    told.put("errors", writeErrors + readErrors);
    told.put("lost", lost);
    tell(told);
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.addResource(new Path(args[0], "core-site.xml"));
    conf.addResource(new Path(args[0], "hdfs-site.xml"));
    conf.set("dfs.client.failover.proxy.provider.ns", args[1]);
    try (FileSystem fs = FileSystem.get(conf)) {
      long restMs = args.length > 3 ? Long.parseLong(args[3]) : 0;
      new FailoverClient(fs, new Path(args[2]), restMs).run();
    }
    System.exit(0);
  }
}
