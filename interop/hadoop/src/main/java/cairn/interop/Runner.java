package cairn.interop;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** Runs named tests one after the other, prints a line for each, and counts. */
final class Runner {
  /** The body of a test; it passes when it returns. */
  interface Body {
    void run() throws Throwable;
  }

  /** What a test waits for. */
  interface Condition {
    boolean holds() throws Exception;
  }

  private final Pattern only;
  private int passed;
  private final List<String> failed = new ArrayList<>();

  Runner(String only) {
    this.only = Pattern.compile(only);
  }

  boolean wants(String name) {
    return only.matcher(name).find();
  }

  /** Whether tests whose names begin with {@code prefix} may be wanted. */
  boolean wantsGroup(String prefix) {
    for (String p : only.pattern().split("\\|")) {
      if (p.startsWith(prefix) || prefix.startsWith(p)) {
        return true;
      }
    }
    return wants(prefix);
  }

  /** Runs one test, unless its name does not match the {@code --only} expression. */
  void test(String name, Body body) {
    test(name, 0, body);
  }

  /** Judges by {@code body} what took {@code before} seconds already. */
  void test(String name, double before, Body body) {
    if (!wants(name)) {
      return;
    }
    long start = System.nanoTime();
    try {
      body.run();
      passed++;
      System.out.printf("ok      %s (%.1f s)%n", name, before + seconds(start));
    } catch (Throwable e) {
      failed.add(name);
      System.out.printf("FAILED  %s (%.1f s)%n    %s%n", name, before + seconds(start), reason(e));
    }
  }

  private static double seconds(long start) {
    return (System.nanoTime() - start) / 1e9;
  }

  private static String reason(Throwable e) {
    if (e instanceof AssertionError) {
      return e.getMessage();
    }
    StringWriter text = new StringWriter();
    e.printStackTrace(new PrintWriter(text));
    String[] lines = text.toString().split("\n");
    return String.join("\n    ", List.of(lines).subList(0, Math.min(lines.length, 25)));
  }

  /** Prints the closing lines and says whether all went well; no test at all is a failure. */
  boolean finish() {
    failed.forEach(name -> System.out.println("failed: " + name));
    System.out.printf("%d passed, %d failed%n", passed, failed.size());
    return failed.isEmpty() && passed > 0;
  }

  static void check(boolean truth, String what) {
    if (!truth) {
      throw new AssertionError(what);
    }
  }

  static void equal(Object wanted, Object seen, String what) {
    check(wanted.equals(seen), what + ": wanted " + wanted + ", got " + seen);
  }

  /** Waits a minute for a condition. */
  static void await(String what, Condition condition) throws Exception {
    await(60, what, condition);
  }

  static void await(int seconds, String what, Condition condition) throws Exception {
    await(seconds, () -> what, condition);
  }

  /** The same, with words that tell how things are in the end. */
  static void await(int seconds, Callable<String> what, Condition condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (!condition.holds()) {
      if (System.nanoTime() > end) {
        throw new AssertionError("not after " + seconds + " s: " + what.call());
      }
      Thread.sleep(50);
    }
  }
}
