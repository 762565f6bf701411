package cairn.interop;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Random;
import java.util.concurrent.Callable;

/** Rows that a thread writes until it is told to stop, and how many of them have been acknowledged. */
final class Load implements AutoCloseable {
  /** Writes {@code count} rows from {@code first} on; they are acknowledged when it returns. */
  interface Sink {
    void write(long first, int count) throws Exception;
  }

  private static final int BATCH = 20;
  private static final long LIMIT_SECONDS = 180;

  private final Thread thread;
  private volatile long acknowledged;
  private volatile boolean ending;
  private volatile Throwable failure;

  Load(Sink sink) {
    thread =
        new Thread(
            () -> {
              try {
                while (!ending) {
                  sink.write(acknowledged, BATCH);
                  acknowledged += BATCH;
                }
              } catch (Throwable e) {
                failure = e;
              }
            },
            "load");
    thread.setDaemon(true);
    thread.start();
  }

  static String row(long i) {
    return String.format("%02x-%08d", (i * 0x9e3779b97f4a7c15L) >>> 56, i);
  }

  /** What belongs into a row; never the same in two rows. */
  static byte[] value(long i) {
    byte[] fill = new byte[60];
    new Random(i).nextBytes(fill);
    return (i + ":" + Base64.getEncoder().encodeToString(fill)).getBytes(StandardCharsets.UTF_8);
  }

  long acknowledged() throws Exception {
    if (failure != null) {
      throw new Exception("writing row " + acknowledged, failure);
    }
    return acknowledged;
  }

  /** Waits until {@code more} rows than now have been acknowledged. */
  void go(long more) throws Exception {
    long end = acknowledged() + more;
    await(more + " more rows", () -> acknowledged() >= end);
  }

  /** Stops after the rows at hand, and returns how many have been acknowledged. */
  long stop() throws Exception {
    ending = true;
    thread.join(LIMIT_SECONDS * 1000);
    Runner.check(!thread.isAlive(), "the writer hangs after row " + acknowledged);
    return acknowledged();
  }

  @Override
  public void close() {
    ending = true;
    thread.interrupt();
  }

  static void await(String what, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + LIMIT_SECONDS * 1_000_000_000L;
    while (!condition.call()) {
      Runner.check(System.nanoTime() < end, "not after " + LIMIT_SECONDS + " s: " + what);
      Thread.sleep(100);
    }
  }
}
