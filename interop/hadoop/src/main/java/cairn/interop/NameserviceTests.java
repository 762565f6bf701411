package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Cairn's client on a nameservice of Hadoop, whose active NameNode changes and dies. */
final class NameserviceTests implements AutoCloseable {
  private static final int DATA_NODES = 5;
  private static final int FILES = 80;

  private final Main.Context x;
  private final File work;
  private final Process service;
  private final BufferedReader answers;
  private final String conf;

  private NameserviceTests(Main.Context x) throws Exception {
    this.x = x;
    work = new File(x.work(), "nameservice");
    work.mkdirs();
    List<String> words = new ArrayList<>(List.of("nameservice", "--data", work.getPath()));
    words.addAll(List.of("--datanodes", "" + DATA_NODES));
    x.keys().forEach((key, value) -> words.addAll(List.of("-D", key + "=" + value)));
    File log = new File(work, "hadoop.log");
    service = new Target(null).launch(words, log);
    answers = service.inputReader(StandardCharsets.UTF_8);
    String line = answers.readLine();
    check(line != null, "Hadoop serves, see " + log);
    conf = new ObjectMapper().readTree(line).path("conf").asText();
  }

  static void run(Main.Context x) throws Exception {
    if (x.cairn() == null || !x.runner().wantsGroup("nameservice/")) {
      return;
    }
    try (NameserviceTests t = new NameserviceTests(x)) {
      x.runner().test("nameservice/files outlive a failover", t::files);
      x.runner().test("nameservice/a put goes on while the active NameNode changes", t::failoverDuringPut);
      x.runner().test("nameservice/a put goes on when the active NameNode dies", t::deathDuringPut);
      x.runner().test("nameservice/a DataNode of Cairn says that it reports to one NameNode", t::dataNode);
    }
  }

  @Override
  public void close() {
    service.destroyForcibly();
  }

  private void tell(String line) throws IOException {
    service.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
    service.getOutputStream().flush();
    check(answers.readLine() != null, line + " is obeyed");
  }

  private Process start(String... words) throws IOException {
    List<String> command = new ArrayList<>(List.of(x.cairn().getPath(), "--conf", conf));
    command.addAll(List.of(words));
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  private static String end(Process process, int code) throws Exception {
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    equal(code, process.waitFor(), "exit code, after " + out);
    return out;
  }

  private String cairn(String... words) throws Exception {
    return end(start(words), 0);
  }

  private File local(String name, long length) throws IOException {
    File file = new File(work, name);
    try (OutputStream out = new FileOutputStream(file)) {
      Data.copy(new Data.Source(length, length), out);
    }
    return file;
  }

  private void files() throws Exception {
    String uri = "hdfs://" + Nameservice.NAME;
    cairn("fs", "mkdir", "/ec");
    cairn("ec", "-enablePolicy", "-policy", "RS-3-2-1024k");
    cairn("ec", "-setPolicy", "-path", "/ec", "-policy", "RS-3-2-1024k");
    File first = local("first", 10_000_001);
    cairn("fs", "put", first.getPath(), uri + "/ec/first");
    tell("failover");
    cairn("fs", "put", first.getPath(), "/second");
    for (String path : List.of("/ec/first", uri + "/second")) {
      File back = new File(work, "back");
      cairn("fs", "get", path, back.getPath());
      equal(Data.digest(first), Data.digest(back), path);
      check(back.delete(), "the copy is deleted");
    }
    check(cairn("fsck", "/").contains("is HEALTHY"), "the active NameNode answers fsck");
    check(cairn("report").contains("" + DATA_NODES), "the report names the DataNodes");
  }

  /** Puts many small files, while something happens to the NameNodes. */
  private void put(String to, String event, int times) throws Exception {
    File folder = new File(work, to);
    folder.mkdirs();
    for (int i = 0; i < FILES; i++) {
      try (OutputStream out = new FileOutputStream(new File(folder, "" + i))) {
        Data.copy(new Data.Source(i, 1000 + i), out);
      }
    }
    Process put = start("fs", "put", folder.getPath(), "/ec/" + to);
    for (int i = 0; i < times; i++) {
      Thread.sleep(100);
      tell(event);
    }
    end(put, 0);
    File back = new File(work, to + "-back");
    cairn("fs", "get", "/ec/" + to, back.getPath());
    for (int i = 0; i < FILES; i++) {
      equal(Data.digest(i, 1000 + i), Data.digest(new File(back, "" + i)), "file " + i);
    }
  }

  private void failoverDuringPut() throws Exception {
    put("many", "failover", 4);
  }

  private void deathDuringPut() throws Exception {
    put("more", "kill", 1);
  }

  private void dataNode() throws Exception {
    String said = end(start("datanode", "--data", new File(work, "own").getPath()), 1);
    check(said.contains("a DataNode of Cairn reports to one NameNode"), said);
  }
}
