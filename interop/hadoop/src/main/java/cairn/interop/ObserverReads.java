package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Two clients of which one makes directories. It looks for each at once; the other one looks for it, calls {@code msync} and
 * looks again. Then that one opens and reads a file of the first one again and again. Tells how many directories the first
 * one has missed, and the other one after {@code msync}, which are to be none, how many that one saw before, and how often the
 * file was read, which is whole. Arguments: the folder of the configuration, a proxy provider, a directory, how many.
 */
public final class ObserverReads {
  private ObserverReads() {}

  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.addResource(new Path(args[0], "core-site.xml"));
    conf.addResource(new Path(args[0], "hdfs-site.xml"));
    conf.set("dfs.client.failover.proxy.provider.ns", args[1]);
    // By itself no client asks how far the leader is but once.
    conf.set("dfs.client.failover.observer.auto-msync-period.ns", "-1");
    int made = Integer.parseInt(args[3]);
    int missed = 0;
    int before = 0;
    FileSystem maker = FileSystem.newInstance(FileSystem.getDefaultUri(conf), conf);
    FileSystem reader = FileSystem.newInstance(FileSystem.getDefaultUri(conf), conf);
    for (int i = 0; i < made; i++) {
      Path path = new Path(args[2], "" + i);
      maker.mkdirs(path);
      missed += maker.exists(path) ? 0 : 1;
      before += reader.exists(path) ? 1 : 0;
      reader.msync();
      missed += reader.exists(path) ? 0 : 1;
    }
    Path file = new Path(args[2], "file");
    byte[] bytes = new byte[100_000];
    new Random(made).nextBytes(bytes);
    try (FSDataOutputStream out = maker.create(file)) {
      out.write(bytes);
    }
    reader.msync();
    for (int i = 0; i < made; i++) {
      byte[] read = new byte[bytes.length];
      try (FSDataInputStream in = reader.open(file)) {
        in.readFully(0, read);
      }
      if (!Arrays.equals(read, bytes)) {
        throw new IOException(file + " is not what was written");
      }
    }
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("made", made);
    told.put("missed", missed);
    told.put("seen_before_msync", before);
    told.put("opened", made);
    System.out.println(new ObjectMapper().writeValueAsString(told));
    System.exit(0);
  }
}
