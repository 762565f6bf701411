package cairn.interop;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicyInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.io.erasurecode.ECSchema;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Hadoop's client for the benchmarks: one command a line on standard input, one line back: the seconds it took, where
 * nothing else is said, or an error.
 *
 * <pre>
 * ready URI COUNT          waits until COUNT DataNodes are live and safe mode is off
 * folder URI PATH POLICY   makes a folder; POLICY is an erasure coding policy or "replicate"
 * put URI LOCAL PATH
 * get URI PATH LOCAL
 * delete URI PATH
 * lost URI PATH            replicas and units that the files below a folder lack
 * live URI                 DataNodes that are live
 * preads URI PATH N LEN [AT_ONCE]   reads at N random places: the median, 99th percentile and longest second, and all
 * looks URI PATH N LEN AT_ONCE [FROM TO]   the same, within a range of the file: the seconds of each read, in ascending order
 * places URI PATH          each block as OFFSET,LENGTH,HOST:PORT,...
 * write URI FOLDER N LEN AT_ONCE    writes N files of LEN bytes
 * read URI FOLDER N AT_ONCE         reads them
 * opens URI FOLDER N READS AT_ONCE  reads as many of N files, chosen at random: as with preads
 * calls URI N AT_ONCE      N calls on one connection
 * connections URI N        makes N connections, one after the other, each for one call, as who runs this program
 * connections URI N TOKEN  the same with a delegation token alone, which it gets for that
 * </pre>
 */
public final class BenchClient {
  private static final int BUFFER = 1 << 20;
  private static final AtomicInteger NEXT = new AtomicInteger();
  private final Map<String, DistributedFileSystem> systems = new HashMap<>();

  private BenchClient() {}

  public static void main(String[] args) throws Exception {
    BenchClient client = new BenchClient();
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      long start = System.nanoTime();
      try {
        String answer = client.command(line.split(" "));
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.println(answer.isEmpty() ? "%.6f".formatted(seconds) : answer);
      } catch (IOException e) {
        System.out.println("error " + String.valueOf(e).replace('\n', ' '));
      }
    }
    System.exit(0);
  }

  private DistributedFileSystem system(String uri) throws IOException {
    DistributedFileSystem fs = systems.get(uri);
    if (fs == null) {
      Configuration conf = new HdfsConfiguration();
      conf.set("ipc.client.connect.max.retries", "1");
      conf.set("ipc.client.connect.retry.interval", "50");
      fs = (DistributedFileSystem) FileSystem.newInstance(URI.create(uri), conf);
      systems.put(uri, fs);
    }
    return fs;
  }

  /** Does one command; returns what there is to say beside the time it took. */
  private String command(String[] w) throws IOException {
    switch (w[0]) {
      case "ready" -> ready(w[1], Integer.parseInt(w[2]));
      case "folder" -> {
        DistributedFileSystem fs = system(w[1]);
        fs.mkdirs(new Path(w[2]));
        if (!w[3].equals("replicate")) {
          addIfUnknown(fs, w[3]);
          fs.enableErasureCodingPolicy(w[3]);
          fs.setErasureCodingPolicy(new Path(w[2]), w[3]);
        }
      }
      case "put" -> {
        try (InputStream in = new FileInputStream(w[2]);
            OutputStream out = system(w[1]).create(new Path(w[3]), true)) {
          copy(in, out);
        }
      }
      case "get" -> {
        try (InputStream in = system(w[1]).open(new Path(w[2]));
            OutputStream out = new FileOutputStream(w[3])) {
          copy(in, out);
        }
      }
      case "delete" -> system(w[1]).delete(new Path(w[2]), true);
      case "lost" -> {
        return Long.toString(lost(system(w[1]), new Path(w[2])));
      }
      case "live" -> {
        return Integer.toString(system(w[1]).getDataNodeStats(DatanodeReportType.LIVE).length);
      }
      case "preads" -> {
        int atOnce = w.length > 5 ? Integer.parseInt(w[5]) : 1;
        int count = Integer.parseInt(w[3]);
        double[] seconds = new double[count];
        DistributedFileSystem fs = system(w[1]);
        Path path = new Path(w[2]);
        long to = fs.getFileStatus(path).getLen();
        double all = preads(fs, path, seconds, Integer.parseInt(w[4]), atOnce, 0, to);
        return of(seconds, all);
      }
      case "looks" -> {
        double[] seconds = new double[Integer.parseInt(w[3])];
        DistributedFileSystem fs = system(w[1]);
        Path path = new Path(w[2]);
        long from = w.length > 6 ? Long.parseLong(w[6]) : 0;
        long to = w.length > 7 ? Long.parseLong(w[7]) : fs.getFileStatus(path).getLen();
        preads(fs, path, seconds, Integer.parseInt(w[4]), Integer.parseInt(w[5]), from, to);
        return Arrays.stream(seconds).mapToObj("%.6f"::formatted).collect(Collectors.joining(" "));
      }
      case "places" -> {
        DistributedFileSystem fs = system(w[1]);
        List<String> blocks = new ArrayList<>();
        for (BlockLocation block : fs.getFileBlockLocations(new Path(w[2]), 0, Long.MAX_VALUE)) {
          blocks.add(block.getOffset() + "," + block.getLength() + "," + String.join(",", block.getNames()));
        }
        return String.join(" ", blocks);
      }
      case "write" -> {
        long length = Long.parseLong(w[4]);
        all(system(w[1]), w[2], Integer.parseInt(w[3]), Integer.parseInt(w[5]), (fs, path) -> write(fs, path, length));
      }
      case "calls" -> {
        DistributedFileSystem fs = system(w[1]);
        AtomicInteger left = new AtomicInteger(Integer.parseInt(w[2]));
        threads(
            Integer.parseInt(w[3]),
            thread -> {
              while (left.getAndDecrement() > 0) {
                fs.getClient().getFileInfo("/");
              }
            });
      }
      case "connections" -> {
        UserGroupInformation user = UserGroupInformation.getLoginUser();
        if (w.length > 3) {
          Credentials tokens = new Credentials();
          system(w[1]).addDelegationTokens("nobody", tokens);
          user = UserGroupInformation.createRemoteUser(user.getShortUserName());
          user.addCredentials(tokens);
        }
        return connections(user, URI.create(w[1]), Integer.parseInt(w[2]));
      }
      case "read" -> all(system(w[1]), w[2], Integer.parseInt(w[3]), Integer.parseInt(w[4]), BenchClient::read);
      case "opens" -> {
        double[] seconds = new double[Integer.parseInt(w[4])];
        double all = opens(system(w[1]), w[2], Integer.parseInt(w[3]), seconds, Integer.parseInt(w[5]));
        return of(seconds, all);
      }
      default -> throw new IOException("unknown command " + w[0]);
    }
    return "";
  }

  /** The seconds that as many connections take. Hadoop's client shares one among all that have the same settings. */
  private static String connections(UserGroupInformation user, URI uri, int count) throws IOException {
    try {
      return user.doAs(
          (PrivilegedExceptionAction<String>)
              () -> {
                long start = System.nanoTime();
                for (int i = 0; i < count; i++) {
                  Configuration conf = new HdfsConfiguration();
                  conf.setInt("ipc.client.connection.maxidletime", 1000 + NEXT.getAndIncrement());
                  try (FileSystem fs = FileSystem.newInstance(uri, conf)) {
                    ((DistributedFileSystem) fs).getClient().getFileInfo("/");
                  }
                }
                return "%.6f".formatted((System.nanoTime() - start) / 1e9);
              });
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  private static long lost(DistributedFileSystem fs, Path folder) throws IOException {
    long lost = 0;
    for (FileStatus file : fs.listStatus(folder)) {
      ErasureCodingPolicy policy = fs.getErasureCodingPolicy(file.getPath());
      int wanted =
          policy == null
              ? file.getReplication()
              : policy.getNumDataUnits() + policy.getNumParityUnits();
      for (BlockLocation block : fs.getFileBlockLocations(file, 0, file.getLen())) {
        lost += Math.max(0, wanted - block.getHosts().length);
      }
    }
    return lost;
  }

  private interface One {
    void run(DistributedFileSystem fs, Path path) throws IOException;
  }

  /** Has {@code atOnce} threads do {@code one} with the files {@code folder/0} and so on. */
  private static void all(DistributedFileSystem fs, String folder, int count, int atOnce, One one) throws IOException {
    AtomicInteger next = new AtomicInteger();
    threads(
        atOnce,
        thread -> {
          for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
            one.run(fs, new Path(folder + "/" + i));
          }
        });
  }

  private interface Work {
    void run(int thread) throws IOException;
  }

  private static void threads(int count, Work work) throws IOException {
    List<CompletableFuture<Void>> all = new ArrayList<>();
    ExecutorService pool = Executors.newFixedThreadPool(count);
    for (int i = 0; i < count; i++) {
      int thread = i;
      all.add(
          CompletableFuture.runAsync(
              () -> {
                try {
                  work.run(thread);
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              },
              pool));
    }
    try {
      for (CompletableFuture<Void> one : all) {
        one.join();
      }
    } catch (CompletionException e) {
      throw new IOException(e.getCause());
    } finally {
      pool.shutdown();
    }
  }

  private static void write(DistributedFileSystem fs, Path path, long length) throws IOException {
    byte[] piece = new byte[(int) Math.min(BUFFER, length)];
    new Random(1).nextBytes(piece);
    try (OutputStream out = fs.create(path, true)) {
      for (long left = length; left > 0; left -= piece.length) {
        out.write(piece, 0, (int) Math.min(left, piece.length));
      }
    }
  }

  private static void read(DistributedFileSystem fs, Path path) throws IOException {
    byte[] buffer = new byte[BUFFER];
    try (FSDataInputStream in = fs.open(path)) {
      while (in.read(buffer) >= 0) {
        // Only the time counts.
      }
    }
  }

  /** Policies with other cells than Hadoop's own have to be added: {@code RS-6-3-64k}. */
  private static void addIfUnknown(DistributedFileSystem fs, String name) throws IOException {
    for (ErasureCodingPolicyInfo known : fs.getAllErasureCodingPolicies()) {
      if (known.getPolicy().getName().equals(name)) {
        return;
      }
    }
    String[] w = name.split("-");
    ECSchema schema = new ECSchema(w[0].toLowerCase(Locale.ROOT), Integer.parseInt(w[1]), Integer.parseInt(w[2]));
    int cell = Integer.parseInt(w[3].replace("k", "")) << 10;
    fs.addErasureCodingPolicies(new ErasureCodingPolicy[] {new ErasureCodingPolicy(schema, cell)});
  }

  /** Fills in how long each read took, sorted, of what is in a range of the file; the seconds of all. */
  private static double preads(
      DistributedFileSystem fs, Path path, double[] seconds, int length, int atOnce, long from, long to)
      throws IOException {
    long begin = System.nanoTime();
    try (FSDataInputStream in = fs.open(path)) {
      long places = to - from - length;
      threads(
          atOnce,
          thread -> {
            byte[] buffer = new byte[length];
            Random random = new Random(thread);
            for (int i = thread; i < seconds.length; i += atOnce) {
              long start = System.nanoTime();
              in.readFully(from + random.nextLong(places), buffer);
              seconds[i] = (System.nanoTime() - start) / 1e9;
            }
          });
    }
    double all = (System.nanoTime() - begin) / 1e9;
    Arrays.sort(seconds);
    return all;
  }

  /** Fills in how long it took to open and read each file, sorted; the seconds of all. */
  private static double opens(DistributedFileSystem fs, String folder, int files, double[] seconds, int atOnce)
      throws IOException {
    long begin = System.nanoTime();
    threads(
        atOnce,
        thread -> {
          Random random = new Random(thread);
          for (int i = thread; i < seconds.length; i += atOnce) {
            long start = System.nanoTime();
            read(fs, new Path(folder + "/" + random.nextInt(files)));
            seconds[i] = (System.nanoTime() - start) / 1e9;
          }
        });
    double all = (System.nanoTime() - begin) / 1e9;
    Arrays.sort(seconds);
    return all;
  }

  /** The median, the 99th percentile and the longest of sorted times, and the time of all. */
  private static String of(double[] sorted, double all) {
    int count = sorted.length;
    return "%.6f %.6f %.6f %.6f".formatted(sorted[count / 2], sorted[count * 99 / 100], sorted[count - 1], all);
  }

  private static void copy(InputStream in, OutputStream out) throws IOException {
    byte[] buffer = new byte[BUFFER];
    for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
      out.write(buffer, 0, n);
    }
  }

  private void ready(String uri, int count) throws IOException {
    long end = System.nanoTime() + 120_000_000_000L;
    while (true) {
      try {
        DistributedFileSystem fs = system(uri);
        if (fs.getDataNodeStats(DatanodeReportType.LIVE).length >= count
            && !fs.setSafeMode(SafeModeAction.GET)) {
          return;
        }
      } catch (IOException e) {
        if (System.nanoTime() > end) {
          throw e;
        }
      }
      if (System.nanoTime() > end) {
        throw new IOException("not ready after 120 s");
      }
      try {
        Thread.sleep(20);
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
    }
  }
}
