package cairn.interop;

import java.io.File;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.FileUtil;

/** A suite's command line: what it is run against, which tests of it, and where its files go. */
final class Suite {
  private final Map<String, String> flags = new HashMap<>();
  private final Target target;
  private final Runner runner;
  private final File work;

  /** {@code only} is the flag that chooses tests, {@code folder} how the name of a temporary folder begins. */
  Suite(String[] args, String only, String folder) {
    for (int i = 0; i < args.length; i++) {
      boolean valued = i + 1 < args.length && !args[i + 1].startsWith("--");
      flags.put(args[i], valued ? args[++i] : "");
    }
    if (has("--hadoop") == has("--cairn")) {
      System.err.println("give --cairn BINARY or --hadoop; got " + Arrays.toString(args));
      System.exit(2);
    }
    target = new Target(has("--cairn") ? new File(flags.get("--cairn")).getAbsoluteFile() : null);
    runner = new Runner(value(only));
    String own = "/tmp/" + folder + "-" + ProcessHandle.current().pid();
    work = new File(flags.getOrDefault("--work", own)).getAbsoluteFile();
    work.mkdirs();
    if (work.list() == null || work.list().length > 0) {
      System.err.println(work + " is not an empty folder");
      System.exit(2);
    }
    System.out.println("target: " + target.label() + ", files in " + work);
  }

  boolean has(String flag) {
    return flags.containsKey(flag);
  }

  /** What was given with a flag; empty if nothing was. */
  String value(String flag) {
    return flags.getOrDefault(flag, "");
  }

  Target target() {
    return target;
  }

  Runner runner() {
    return runner;
  }

  File work() {
    return work;
  }

  /** Says how the tests ended, and ends the process. */
  void end() throws Exception {
    boolean good = runner.finish();
    if (good && !has("--keep")) {
      FileUtil.fullyDelete(work);
    }
    // Hadoop's clients, and those of programs on it, leave threads behind.
    System.exit(good ? 0 : 1);
  }
}
