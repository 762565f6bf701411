package cairn.interop;

import static cairn.interop.Runner.check;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileUtil;

/**
 * Hadoop's client on the machine of its DataNodes, which reads replicas' files itself. That needs Hadoop's native code,
 * which would change what all other tests do: so it runs in a JVM of its own, {@link ShortCircuitClient}.
 */
final class ShortCircuitTests {
  private final Main.Context x;

  private ShortCircuitTests(Main.Context x) {
    this.x = x;
  }

  static void run(Main.Context x) throws Exception {
    if (!new File(library(), "libhadoop.so").exists()) {
      System.out.println("NOT RUN local/: there is no libhadoop.so for this machine");
      return;
    }
    ShortCircuitTests t = new ShortCircuitTests(x);
    x.runner().test("local/files are read through descriptors, memory and slots shared", t::shared);
  }

  /** The folder of {@code libhadoop.so}. */
  static String library() {
    return new File(System.getProperty("interop.home"), "hadoop/target/native").getPath();
  }

  private void shared() throws Exception {
    // Hadoop wants no folder above the socket that others may write to.
    Path folder = Files.createTempDirectory(Path.of(System.getProperty("user.home")), ".cairn-interop-");
    Map<String, String> keys = x.keys();
    keys.put("dfs.domain.socket.path", folder + "/_PORT");
    keys.put("dfs.client.read.shortcircuit", "true");
    keys.put("dfs.datanode.max.locked.memory", "" + (4 << 20));
    keys.put("dfs.cachereport.intervalMsec", "500");
    try (ClusterProcess cluster = new ClusterProcess(x.target(), new File(x.work(), "local"), 5, 1, keys)) {
      List<String> command =
          List.of(
              System.getProperty("java.home") + "/bin/java",
              "-Xmx512m",
              "-Djava.library.path=" + library(),
              "-Dlog4j.configuration=log4j-stderr.properties",
              "-cp",
              System.getProperty("java.class.path"),
              ShortCircuitClient.class.getName(),
              cluster.confDir(),
              keys.get("dfs.domain.socket.path"));
      Process client = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.appendTo(cluster.log())).start();
      String said = new String(client.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      check(client.waitFor(120, TimeUnit.SECONDS), "the client ends");
      check(client.exitValue() == 0, "the client says: " + said + "; see " + cluster.log());
    } finally {
      FileUtil.fullyDelete(folder.toFile());
    }
  }
}
