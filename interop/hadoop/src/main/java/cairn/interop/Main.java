package cairn.interop;

import java.io.File;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileUtil;

/**
 * The suite. {@code --cairn BINARY} tests Cairn, {@code --hadoop} tests the suite itself against real Hadoop daemons
 * (and, with {@code --record}, writes what Hadoop answered into {@code cases/}). {@code --client BINARY} with
 * {@code --hadoop} also runs Cairn's client against Hadoop's daemons.
 */
public final class Main {
  /** What every group of tests needs to know. */
  record Context(
      Target target,
      Runner runner,
      File work,
      File home,
      File cairn,
      boolean full,
      boolean record) {
    /** Keys that both sides get: no waiting at start, and quick notice of what changes. */
    Map<String, String> keys() {
      Map<String, String> keys = new HashMap<>();
      keys.put("dfs.namenode.safemode.extension", "0");
      keys.put("dfs.heartbeat.interval", "1");
      keys.put("dfs.namenode.redundancy.interval.seconds", "1");
      keys.put("dfs.client.block.write.replace-datanode-on-failure.best-effort", "true");
      // One disk carries all nodes, so load says nothing about a node and must not thin out placement.
      keys.put("dfs.namenode.redundancy.considerLoad", "false");
      return keys;
    }
  }

  private interface Group {
    void run(Context context) throws Exception;
  }

  /** All groups, in two parts of about the same length: much of the time is waiting, so the parts can run side by side. */
  private static final List<List<Group>> PARTS =
      List.of(
          List.of(
              CommandTests::run,
              ContractTests::run,
              DifferentialTests::run,
              FsckTests::run,
              FileTests::run,
              LayoutTests::run,
              PythonTests::run),
          List.of(
              OperateTests::run,
              BadInputTests::run,
              CrossTests::run,
              IntegrityTests::run,
              LazyPersistTests::run,
              TruncateTests::run,
              RoleTests::run,
              ShortCircuitTests::run,
              RestartTests::run,
              MixedTests::run,
              BalanceTests::run,
              VolumeTests::run,
              SatisfierTests::run));

  private Main() {}

  public static void main(String[] args) throws Exception {
    Map<String, String> flags = new HashMap<>();
    for (int i = 0; i < args.length; i++) {
      boolean valued = i + 1 < args.length && !args[i + 1].startsWith("--");
      flags.put(args[i], valued ? args[++i] : "");
    }
    if (flags.containsKey("--hadoop") == flags.containsKey("--cairn")) {
      System.err.println("give --cairn BINARY or --hadoop; got " + Arrays.toString(args));
      System.exit(2);
    }
    String binary = flags.get("--cairn");
    Target target = new Target(binary == null ? null : new File(binary).getAbsoluteFile());
    Runner runner = new Runner(flags.getOrDefault("--only", ""));
    File work =
        new File(flags.getOrDefault("--work", "/tmp/cairn-interop-" + ProcessHandle.current().pid()));
    work.mkdirs();
    if (work.list() == null || work.list().length > 0) {
      System.err.println(work + " is not an empty folder");
      System.exit(2);
    }
    Context context =
        new Context(
            target,
            runner,
            work.getAbsoluteFile(),
            new File(System.getProperty("interop.home")),
            flags.containsKey("--client") ? new File(flags.get("--client")).getAbsoluteFile() : target.cairn,
            flags.containsKey("--full"),
            flags.containsKey("--record"));
    System.out.println("target: " + target.label() + ", files in " + work);
    String part = flags.getOrDefault("--part", "");
    for (int i = 0; i < PARTS.size(); i++) {
      if (part.isEmpty() || part.equals("" + (i + 1))) {
        for (Group group : PARTS.get(i)) {
          group.run(context);
        }
      }
    }
    boolean good = runner.finish();
    if (good && !flags.containsKey("--keep")) {
      FileUtil.fullyDelete(work);
    }
    // Hadoop's clients leave threads behind.
    System.exit(good ? 0 : 1);
  }
}
