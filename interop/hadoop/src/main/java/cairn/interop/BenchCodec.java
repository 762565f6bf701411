package cairn.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.hadoop.io.erasurecode.ErasureCoderOptions;
import org.apache.hadoop.io.erasurecode.rawcoder.RSRawErasureCoderFactory;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureEncoder;

/**
 * Hadoop's coder in Java for {@code bench/codec/compare}: one turn a line on standard input, GB of data a second on
 * standard output; of one thread by its processor time, of several together by the clock.
 *
 * <pre>
 * encode|decode K M CELL MEMORY THREADS MILLISECONDS
 * </pre>
 *
 * MEMORY is how many bytes of stripes are used in turn; 0 is one stripe again and again. {@code decode} rebuilds the
 * first M units.
 */
public final class BenchCodec {
  private record Work(boolean decode, int k, int m, int cell, long memory, int threads) {
    static Work of(String[] w) {
      return new Work(
          w[0].equals("decode"),
          Integer.parseInt(w[1]),
          Integer.parseInt(w[2]),
          Integer.parseInt(w[3]),
          Long.parseLong(w[4]),
          Integer.parseInt(w[5]));
    }

    double seconds() {
      return threads == 1
          ? ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9
          : System.nanoTime() / 1e9;
    }
  }

  /** The stripes of one thread, used in turn, with a coder of its own. */
  private static final class Stripes implements Callable<Double> {
    private final Work work;
    private final byte[][][] stripes;
    private final RawErasureEncoder encoder;
    private final RawErasureDecoder decoder;
    private final int[] lost;
    private double length;
    private int next;

    Stripes(Work work) {
      this.work = work;
      int units = work.k + work.m;
      stripes = new byte[(int) Math.max(1, work.memory / work.threads / units / work.cell)][units][work.cell];
      Random random = new Random(1);
      for (byte[][] stripe : stripes) {
        for (byte[] cell : stripe) {
          random.nextBytes(cell);
        }
      }
      RSRawErasureCoderFactory factory = new RSRawErasureCoderFactory();
      ErasureCoderOptions options = new ErasureCoderOptions(work.k, work.m);
      encoder = factory.createEncoder(options);
      decoder = factory.createDecoder(options);
      lost = IntStream.range(0, work.m).toArray();
    }

    @Override
    public Double call() throws IOException {
      double start = work.seconds();
      long calls = 0;
      while (true) {
        byte[][] cells = stripes[next];
        next = (next + 1) % stripes.length;
        if (work.decode) {
          byte[][] present = cells.clone();
          Arrays.fill(present, 0, work.m, null);
          decoder.decode(present, lost, Arrays.copyOf(cells, work.m));
        } else {
          encoder.encode(Arrays.copyOf(cells, work.k), Arrays.copyOfRange(cells, work.k, cells.length));
        }
        calls++;
        double used = work.seconds() - start;
        if (used >= length) {
          return calls * work.k * (double) work.cell / used / 1e9;
        }
      }
    }
  }

  private BenchCodec() {}

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Work last = null;
    List<Stripes> each = new ArrayList<>();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      Work work = Work.of(words);
      if (!work.equals(last)) {
        each.clear();
        for (int i = 0; i < work.threads; i++) {
          each.add(new Stripes(work));
        }
        last = work;
      }
      each.forEach(stripes -> stripes.length = Integer.parseInt(words[6]) / 1e3);
      ExecutorService pool = Executors.newFixedThreadPool(work.threads);
      double sum = 0;
      for (Future<Double> rate : pool.invokeAll(each)) {
        sum += rate.get();
      }
      pool.shutdown();
      System.out.println("%.3f".formatted(sum));
    }
  }
}
