package cairn.interop;

import static cairn.interop.Runner.equal;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The Python package, and pyarrow with our library in the place of libhdfs, against a cluster of Cairn's own. */
final class PythonTests {
  private PythonTests() {}

  static void run(Main.Context x) throws Exception {
    if (x.target().isHadoop() || !x.runner().wantsGroup("python/")) {
      return;
    }
    x.runner()
        .test(
            "python/the package is built and its tests pass",
            () -> {
              String script = new File(x.home(), "python/package").getPath();
              String venv = new File(x.home(), "hadoop/target/venv").getPath();
              Process p =
                  new ProcessBuilder(List.of(script, x.cairn().getPath(), venv))
                      .redirectErrorStream(true)
                      .start();
              p.getOutputStream().close();
              String out = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
              equal(0, p.waitFor(), "exit code of " + script + ":\n" + out);
            });
  }
}
