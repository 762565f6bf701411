package cairn.interop;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The shell and admin commands, compared with what Hadoop printed: one test for each part of {@code cases/*.txt}. */
final class CommandTests {
  private CommandTests() {}

  static void run(Main.Context x) throws Exception {
    File[] files = new File(x.home(), "hadoop/cases").listFiles((d, n) -> n.endsWith(".txt"));
    Arrays.sort(files);
    List<File> large = new ArrayList<>();
    List<File> small = new ArrayList<>();
    for (File file : files) {
      boolean wanted =
          new Transcript(file).cases.stream().anyMatch(c -> x.runner().wants(name(file, c)));
      if (wanted) {
        (file.getName().startsWith("small") ? small : large).add(file);
      }
    }
    run(x, "commands", 15, 5, large);
    run(x, "commands-small", 4, 1, small);
  }

  private static void run(Main.Context x, String data, int nodes, int racks, List<File> files)
      throws Exception {
    if (files.isEmpty()) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), data), nodes, racks, x.keys())) {
      for (File file : files) {
        Transcript t = new Transcript(file);
        for (Transcript.Case c : t.cases) {
          File local = new File(x.work(), "local/" + name(file, c).replace(' ', '-'));
          x.runner()
              .test(name(file, c), () -> Transcript.run(c, x.target(), cluster.conf(), local, x.record()));
        }
        if (x.record()) {
          t.save();
        }
      }
    }
  }

  private static String name(File file, Transcript.Case c) {
    return "commands/" + file.getName().replace(".txt", "") + "/" + c.name;
  }
}
