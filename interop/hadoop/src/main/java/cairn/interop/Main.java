package cairn.interop;

import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

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
              NameserviceTests::run,
              PythonTests::run,
              ShellTests::run,
              WebHdfsTests::run),
          List.of(
              EncryptionTests::run,
              FileTests::run,
              LayoutTests::run,
              OperateTests::run,
              BadInputTests::run,
              CrossTests::run,
              IntegrityTests::run,
              LazyPersistTests::run,
              TruncateTests::run,
              GroupTests::run,
              LostAnswerTests::run,
              RoleTests::run,
              ShortCircuitTests::run,
              RestartTests::run,
              MixedTests::run,
              BalanceTests::run,
              VolumeTests::run,
              SatisfierTests::run));

  private Main() {}

  public static void main(String[] args) throws Exception {
    Suite suite = new Suite(args, "--only", "cairn-interop");
    Target target = suite.target();
    Context context =
        new Context(
            target,
            suite.runner(),
            suite.work(),
            new File(System.getProperty("interop.home")),
            suite.has("--client") ? new File(suite.value("--client")).getAbsoluteFile() : target.cairn,
            suite.has("--full"),
            suite.has("--record"));
    String part = suite.value("--part");
    for (int i = 0; i < PARTS.size(); i++) {
      if (part.isEmpty() || part.equals("" + (i + 1))) {
        for (Group group : PARTS.get(i)) {
          group.run(context);
        }
      }
    }
    suite.end();
  }
}
