package cairn.interop;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.OutputStream;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Cairn's own commands in Hadoop's spelling ({@code cairn fs -ls}), compared with what Hadoop's printed: the transcripts
 * of {@code cases}, by what is on standard output and whether a command fails. What local files need is done as ever.
 */
final class ShellTests {
  /** What Cairn's commands are called. */
  private static final Set<String> TOOLS =
      Set.of("fs", "admin", "groups", "lsSnapshot", "lsSnapshottableDir", "snapshotDiff", "storagepolicies");

  /** The transcripts, and whether each takes part in a quick run. */
  private static final Map<String, Boolean> FILES =
      Map.of("fs", true, "acl", true, "snapshot", true, "shell", false);

  /** Commands with these words answer something else on purpose, or need what Cairn's commands do not have. */
  private static final List<String> DIFFERENT =
      List.of(
          // Files on the local disk by URI.
          "file://",
          // Clauses of modes are all applied, as in POSIX, and may be empty.
          "-chmod -R u+rwX,g+rX,o= ",
          "-chmod -R -t,g-w,o+w ",
          "ls -R /own",
          // A root that is named by way of a snapshot is told of by the name that was given.
          "snapshotDiff /twice/");

  private ShellTests() {}

  static void run(Main.Context x) throws Exception {
    if (x.target().isHadoop()) {
      return;
    }
    for (String file : FILES.keySet().stream().sorted().toList()) {
      if (!FILES.get(file) && !x.full()) {
        continue;
      }
      Transcript t = new Transcript(new File(x.home(), "hadoop/cases/" + file + ".txt"));
      if (t.cases.stream().noneMatch(c -> x.runner().wants(name(file, c)))) {
        continue;
      }
      try (ClusterProcess cluster =
          new ClusterProcess(x.target(), new File(x.work(), "shell-" + file), 15, 5, x.keys())) {
        String uri = cluster.uri().toString();
        for (Transcript.Case c : t.cases) {
          File local = new File(x.work(), "local/shell-" + file + "-" + c.name.replace(' ', '-'));
          Transcript.Tools tools =
              (tool, user, args, stdin) ->
                  TOOLS.contains(tool) ? cairn(x, uri, local, tool, user, args, stdin) : null;
          x.runner()
              .test(
                  name(file, c),
                  () ->
                      Transcript.compare(
                          c, cluster.conf(), local, Map.of("FS", uri), tools, DIFFERENT));
        }
      }
    }
  }

  private static String name(String file, Transcript.Case c) {
    return "shell/" + file + "/" + c.name;
  }

  private static Shell.Result cairn(
      Main.Context x, String uri, File local, String tool, String user, String[] args, byte[] stdin)
      throws Exception {
    List<String> command = new ArrayList<>(List.of(x.cairn().getPath(), "--fs", uri, tool));
    command.addAll(List.of(args));
    File out = new File(local, ".out");
    File err = new File(local, ".err");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectOutput(Redirect.to(out)).redirectError(Redirect.to(err));
    if (user != null) {
      builder.environment().put("HADOOP_USER_NAME", user);
    }
    Process process = builder.start();
    try (OutputStream in = process.getOutputStream()) {
      in.write(stdin);
    }
    int code = process.waitFor();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Files.copy(out.toPath(), bytes);
    String said = Files.readString(err.toPath(), StandardCharsets.UTF_8);
    return new Shell.Result(code, bytes.toByteArray(), said);
  }
}
