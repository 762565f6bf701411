package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Writes files one after the other until its standard input ends or says {@code stop}, reads all back whose close came to
 * its end, and tells how many there were, how many are lost, and the longest time between two of them.
 */
public final class FailoverWriter {
  private FailoverWriter() {}

  private static long length(int number) {
    return 1000 + 7919L * number % 300_000;
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.addResource(new Path(args[0], "core-site.xml"));
    conf.addResource(new Path(args[0], "hdfs-site.xml"));
    conf.set("dfs.client.failover.proxy.provider.ns", args[1]);
    AtomicBoolean stops = StopWord.listen();
    int acknowledged = 0;
    int errors = 0;
    int lost = 0;
    long longest = 0;
    try (FileSystem fs = FileSystem.get(conf)) {
      fs.mkdirs(new Path(args[2]));
      System.out.println("writes");
      System.out.flush();
      long last = System.nanoTime();
      while (!stops.get()) {
        Path path = new Path(args[2], "" + acknowledged);
        try (OutputStream out = fs.create(path, true)) {
          Data.copy(new Data.Source(acknowledged, length(acknowledged)), out);
        } catch (IOException e) {
          e.printStackTrace();
          errors++;
          continue;
        }
        longest = Math.max(longest, System.nanoTime() - last);
        last = System.nanoTime();
        acknowledged++;
      }
      for (int i = 0; i < acknowledged; i++) {
        try (InputStream in = fs.open(new Path(args[2], "" + i))) {
          if (!Data.digest(i, length(i)).equals(Data.digest(in))) {
            throw new IOException("other bytes");
          }
        } catch (IOException e) {
          System.err.println("file " + i);
          e.printStackTrace();
          lost++;
        }
      }
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("acknowledged", acknowledged);
    told.put("errors", errors);
    told.put("lost", lost);
    told.put("longest_gap_ms", longest / 1_000_000);
    System.out.println(new ObjectMapper().writeValueAsString(told));
    System.exit(0);
  }
}
