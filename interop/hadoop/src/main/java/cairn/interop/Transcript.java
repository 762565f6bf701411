package cairn.interop;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;

/**
 * A file of commands with the output that Hadoop 3.5.0 gave to them.
 *
 * <pre>
 * == name of a test
 * $ fs -put ${L}/a /t          a command: fs, ec, admin (as the hdfs tools), lsSnapshottableDir and its like, or make, bytes, sha (local files)
 * text on standard output
 * ! text on standard error
 * [1]                          the exit code, when it is not 0
 * ~~ reason                    what follows is Cairn's answer, which differs on purpose
 * </pre>
 *
 * {@code @user} before a command runs it as that user, {@code shape} before both reduces numbers to {@code N} and drops
 * repeated paragraphs, {@code < FILE} feeds standard input, and quotes keep blanks. {@code ${L}} is a local scratch folder;
 * {@code \\u0001} in a command is that character, and characters that cannot be seen are printed so;
 * {@code pack FORM FILE LINE...} writes a local file that {@code fs -text} unpacks; {@code follow PATH TEXT...} is
 * {@code fs -tail -f} of a file to which these are appended;
 * {@code call METHOD ARGUMENT...} calls Hadoop's Java client; {@code until PORT STATE} waits until the DataNode at a port of data transfer is in that state of administration.
 * Times, ports, block names and the user's name are replaced by words before comparing.
 */
final class Transcript {
  /** What Hadoop answered to one command and, where Cairn differs on purpose, the reason and Cairn's answer. */
  private record Step(String command, List<String> hadoop, List<String> cairn) {}

  /** One named part of the file: steps that run in order and stop at the first difference. */
  static final class Case {
    final String name;
    private final List<String> notes = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();

    Case(String name) {
      this.name = name;
    }
  }

  private final File file;
  private final List<String> head = new ArrayList<>();
  final List<Case> cases = new ArrayList<>();

  Transcript(File file) throws Exception {
    this.file = file;
    for (String line : Files.readAllLines(file.toPath())) {
      if (line.startsWith("== ")) {
        cases.add(new Case(line.substring(3).trim()));
      } else if (cases.isEmpty()) {
        head.add(line);
      } else {
        Case c = cases.get(cases.size() - 1);
        if (line.startsWith("$ ")) {
          c.steps.add(new Step(line.substring(2), new ArrayList<>(), new ArrayList<>()));
        } else if (c.steps.isEmpty()) {
          c.notes.add(line);
        } else {
          Step last = c.steps.get(c.steps.size() - 1);
          (line.startsWith("~~ ") || !last.cairn.isEmpty() ? last.cairn : last.hadoop).add(line);
        }
      }
    }
  }

  /**
   * Runs {@code c} to its end, so that what follows finds the cluster as the case leaves it. With {@code record} takes
   * what it sees as Hadoop's answers, otherwise fails with all differences.
   */
  static void run(Case c, Target target, Configuration conf, File local, boolean record)
      throws Exception {
    run(c, target, conf, local, record, Map.of());
  }

  /** The same, with words that stand for what is known only when the cluster runs. */
  static void run(
      Case c,
      Target target,
      Configuration conf,
      File local,
      boolean record,
      Map<String, String> words)
      throws Exception {
    run(c, target, conf, local, record, words, (tool, user, args, stdin) -> null);
  }

  /** Commands that some transcripts have besides; null for a command that is none of them. */
  interface Tools {
    Shell.Result run(String tool, String user, String[] args, byte[] stdin) throws Exception;
  }

  /**
   * Runs {@code c} with other tools than Hadoop's, and fails where these print something else on standard output, or do
   * not fail where Hadoop's do. What differs on purpose is named by {@code but}: commands that begin so are carried out
   * and not compared.
   */
  static void compare(
      Case c, Configuration conf, File local, Map<String, String> words, Tools tools, List<String> but)
      throws Exception {
    local.mkdirs();
    List<String> differences = new ArrayList<>();
    for (Step step : c.steps) {
      String command = step.command;
      for (Map.Entry<String, String> word : words.entrySet()) {
        command = command.replace("${" + word.getKey() + "}", word.getValue());
      }
      List<String> seen = effect(perform(command, conf, local, tools));
      List<String> wanted =
          effect(step.cairn.isEmpty() ? step.hadoop : step.cairn.subList(1, step.cairn.size()));
      if (!seen.equals(wanted) && but.stream().noneMatch(step.command::contains)) {
        differences.add(difference(step.command, wanted, seen));
      }
    }
    if (!differences.isEmpty()) {
      throw new AssertionError(String.join("\n    ", differences));
    }
  }

  /** What was printed on standard output, and whether it failed. */
  private static List<String> effect(List<String> lines) {
    List<String> effect = new ArrayList<>(lines);
    effect.removeIf(line -> line.isBlank() || line.startsWith("! "));
    effect.replaceAll(line -> line.matches("\\[-?\\d+\\]") ? "[1]" : line);
    return effect;
  }

  static void run(
      Case c,
      Target target,
      Configuration conf,
      File local,
      boolean record,
      Map<String, String> words,
      Tools tools)
      throws Exception {
    local.mkdirs();
    List<String> differences = new ArrayList<>();
    for (Step step : c.steps) {
      List<String> seen;
      try {
        String command = step.command;
        for (Map.Entry<String, String> word : words.entrySet()) {
          command = command.replace("${" + word.getKey() + "}", word.getValue());
        }
        seen = perform(command, conf, local, tools);
      } catch (IOException e) {
        seen = List.of("! " + normal(e.toString(), local));
      }
      boolean own = !target.isHadoop() && !step.cairn.isEmpty();
      List<String> wanted =
          new ArrayList<>(own ? step.cairn.subList(1, step.cairn.size()) : step.hadoop);
      wanted.removeIf(String::isBlank);
      if (record) {
        step.hadoop.clear();
        step.hadoop.addAll(seen);
      } else if (!seen.equals(wanted)) {
        differences.add(difference(step.command, wanted, seen));
      }
    }
    if (!differences.isEmpty()) {
      throw new AssertionError(String.join("\n    ", differences));
    }
  }

  private static String difference(String command, List<String> wanted, List<String> seen) {
    StringBuilder text = new StringBuilder("$ " + command);
    for (String line : wanted) {
      if (!seen.contains(line)) {
        text.append("\n    - ").append(line);
      }
    }
    for (String line : seen) {
      if (!wanted.contains(line)) {
        text.append("\n    + ").append(line);
      }
    }
    if (text.indexOf("\n") < 0) {
      text.append("\n    the same lines in another order or number: ").append(seen);
    }
    return text.toString();
  }

  /** Writes the file with the outputs that were recorded. */
  void save() throws Exception {
    List<String> lines = new ArrayList<>(head);
    for (Case c : cases) {
      lines.add("== " + c.name);
      lines.addAll(c.notes);
      for (Step s : c.steps) {
        lines.add("$ " + s.command);
        lines.addAll(s.hadoop);
        lines.addAll(s.cairn);
      }
      while (lines.get(lines.size() - 1).isBlank()) {
        lines.remove(lines.size() - 1);
      }
      lines.add("");
    }
    Files.write(file.toPath(), lines);
  }

  private static List<String> perform(
      String command, Configuration conf, File local, Tools tools) throws Exception {
    List<String> words = split(unescaped(command.replace("${L}", local.getPath())));
    String user = null;
    boolean shape = false;
    byte[] stdin = new byte[0];
    if (words.get(0).equals("shape")) {
      words.remove(0);
      shape = true;
    }
    if (words.get(0).startsWith("@")) {
      user = words.remove(0).substring(1);
    }
    int from = words.indexOf("<");
    if (from >= 0) {
      stdin = Files.readAllBytes(Path.of(words.get(from + 1)));
      words.subList(from, from + 2).clear();
    }
    String tool = words.remove(0);
    String[] args = words.toArray(new String[0]);
    Shell.Result result = tools.run(tool, user, args, stdin);
    if (result != null) {
      return lines(result, local, shape);
    }
    switch (tool) {
      case "make" -> result = make(args);
      case "bytes" -> {
        Files.writeString(Path.of(args[0]), args[1].replace("\\n", "\n"));
        result = new Shell.Result(0, new byte[0], "");
      }
      case "sha" -> {
        try (InputStream in = new FileInputStream(args[0])) {
          result = new Shell.Result(0, Data.digest(in).getBytes(StandardCharsets.UTF_8), "");
        }
      }
      case "until" -> {
        until(conf, Integer.parseInt(args[0]), args[1]);
        result = new Shell.Result(0, new byte[0], "");
      }
      case "call" -> result = ClientCalls.run(conf, user, args);
      case "pack" -> {
        Packed.write(args[0], Path.of(args[1]), List.of(args).subList(2, args.length));
        result = new Shell.Result(0, new byte[0], "");
      }
      case "follow" -> result = Followed.run(conf, user, args[0], Arrays.copyOfRange(args, 1, args.length));
      case "show" ->
          result = new Shell.Result(0, Files.readAllBytes(Path.of(args[0])), "");
      default -> {
        boolean ownKeys = args.length > 0 && args[0].startsWith("-D");
        if (ownKeys) {
          // A cached client would not see the keys of this command.
          FileSystem.closeAll();
        }
        result = Shell.run(conf, user, tool, args, stdin);
        if (ownKeys) {
          FileSystem.closeAll();
        }
      }
    }
    return lines(result, local, shape);
  }

  private static void until(Configuration conf, int port, String state) throws Exception {
    DistributedFileSystem fs = (DistributedFileSystem) FileSystem.get(conf);
    long end = System.nanoTime() + 30_000_000_000L;
    while (true) {
      DatanodeInfo[] nodes = fs.getDataNodeStats(DatanodeReportType.ALL);
      for (DatanodeInfo node : nodes) {
        if (node.getXferPort() == port && node.getAdminState().name().equals(state)) {
          return;
        }
      }
      if (System.nanoTime() > end) {
        throw new IOException("the DataNode is not " + state + " after 30 s");
      }
      Thread.sleep(50);
    }
  }

  private static Shell.Result make(String[] args) throws Exception {
    try (OutputStream out = new FileOutputStream(args[0])) {
      Data.copy(new Data.Source(Long.parseLong(args[2]), Long.parseLong(args[1])), out);
    }
    return new Shell.Result(0, new byte[0], "");
  }

  private static List<String> lines(Shell.Result r, File local, boolean shape) {
    List<String> lines = new ArrayList<>();
    String out = normal(r.text(), local);
    for (String line : (shape ? shapeOf(out) : out).split("\n", -1)) {
      lines.add(line.stripTrailing());
    }
    for (String line : normal(r.err(), local).split("\n")) {
      if (line.startsWith("Usage: hadoop fs") || line.startsWith("Generic options")) {
        break; // from here on it is the client's own help
      }
      if (!line.isBlank() && !line.startsWith("\tat ")) {
        lines.add("! " + line.stripTrailing());
      }
    }
    if (r.code() != 0) {
      lines.add("[" + r.code() + "]");
    }
    lines.removeIf(String::isEmpty);
    return lines;
  }

  private static final Pattern ESCAPE = Pattern.compile("\\\\u([0-9a-f]{4})");
  private static final Pattern CONTROL = Pattern.compile("[\\p{Cntrl}\\p{Cf}&&[^\t\n\r]]");

  private static final Object[][] WORDS = {
    {"\\d{4,}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d[+-]\\d{4}", "DATE"},
    {"\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d(:\\d\\d)?", "DATE"},
    {"DATE,\\d{3}[+-]\\d{4}", "DATE"},
    {"[A-Z][a-z]{2} [A-Z][a-z]{2} \\d\\d \\d\\d:\\d\\d:\\d\\d [A-Z]+ \\d{4}", "DATE"},
    {"\\b1[6-9]\\d{11}\\b", "MILLIS"},
    {"BP-\\d+-[0-9.]+-(\\d+|MILLIS)", "POOL"},
    {"blk_-?\\d+(_\\d+)?", "BLK"},
    {"(localhost|127\\.0\\.0\\.1):\\d+", "HOST:PORT"},
    {"(?<!snapshot )\\b" + Pattern.quote(System.getProperty("user.name")) + "\\b(?! of )", "USER"},
    {"\\.{3,}", "..."},
    {"\\.\\.\\.\\s*(WARNING: the waiting time[^\n]*\n)?[. ]*done", "... done"},
    {"DFSClient_[A-Za-z]+_-?\\d+_\\d+", "CLIENT"},
    {"\\[id=\\d+, path=", "[id=N, path="},
    // A method that was called often is called by way of other frames.
    {"(?m)^\t\\.\\.\\. \\d+ more$", "\t... N more"},
    {"\\b(edek|iv): [0-9a-f]{32}\\b", "$1: BYTES"},
    {"(raw\\.hdfs\\.crypto\\.file\\.encryption\\.info)=0x[0-9a-f]{70,}", "$1=BYTES"},
  };

  private static String normal(String text, File local) {
    text = escaped(text.replace(local.getPath(), "${L}"));
    for (Object[] w : WORDS) {
      text = text.replaceAll((String) w[0], (String) w[1]);
    }
    return text;
  }

  private static String unescaped(String command) {
    return ESCAPE.matcher(command).replaceAll(m -> Matcher.quoteReplacement("" + (char) Integer.parseInt(m.group(1), 16)));
  }

  private static String escaped(String text) {
    return CONTROL.matcher(text).replaceAll(m -> String.format("\\\\u%04x", (int) m.group().charAt(0)));
  }

  private static String shapeOf(String text) {
    Set<String> paragraphs = new LinkedHashSet<>();
    for (String p : text.split("\n\n+")) {
      p = p.replaceAll("  +", "  ").replaceAll("(Hostname|Rack): \\S+", "$1: WORD");
      paragraphs.add(p.replaceAll("\\b[0-9][0-9.,]*( ([KMGTP]?B|[KMGTP]))?(?=\\W|$)", "N").strip());
    }
    return String.join("\n", paragraphs);
  }

  /** Splits at blanks that are not inside single or double quotes. */
  private static List<String> split(String command) {
    List<String> words = new ArrayList<>();
    StringBuilder word = null;
    char quote = 0;
    for (char ch : command.toCharArray()) {
      if (quote != 0) {
        if (ch == quote) {
          quote = 0;
        } else {
          word.append(ch);
        }
      } else if (ch == '\'' || ch == '"') {
        quote = ch;
        word = word == null ? new StringBuilder() : word;
      } else if (ch == ' ') {
        if (word != null) {
          words.add(word.toString());
          word = null;
        }
      } else {
        word = (word == null ? new StringBuilder() : word).append(ch);
      }
    }
    if (word != null) {
      words.add(word.toString());
    }
    return words;
  }
}
