package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** Files that one client writes and another reads: Cairn's own command, Hadoop's client, and Python's hdfs-native. */
final class CrossTests {
  private static final long MIB = 1 << 20;

  private final Main.Context x;
  private final Runner runner;
  private final ClusterProcess cluster;

  private CrossTests(Main.Context x, ClusterProcess cluster) {
    this.x = x;
    this.runner = x.runner();
    this.cluster = cluster;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("cross/")) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), "cross"), 15, 5, x.keys())) {
      FileTests.makeFolders(cluster.fs(), "/cross");
      CrossTests t = new CrossTests(x, cluster);
      t.python();
      if (x.cairn() != null) {
        t.cairn();
      }
    }
  }

  private void python() {
    runner.test(
        "cross/hdfs-native for Python writes and reads an erasure-coded file",
        () -> {
          String dir = "/cross/RS-6-3-1024k";
          DistributedFileSystem fs = cluster.fs();
          Path byHadoop = new Path(dir, "by-hadoop");
          String sha = FileTests.store(fs, byHadoop, 3, 13 * MIB + 7, 2 * MIB);
          String python = new File(x.home(), "hadoop/target/venv/bin/python3").getPath();
          String script = new File(x.home(), "python/ec_roundtrip.py").getPath();
          String out = command(List.of(python, script, cluster.uri(), dir, byHadoop.toUri().getPath()));
          JsonNode seen = new ObjectMapper().readTree(out);
          equal(sha, seen.path("hadoop").asText(), "SHA-256 of Hadoop's file as Python reads it");
          equal(3, seen.path("files").size(), "files by Python");
          for (JsonNode f : seen.path("files")) {
            equal(f.path("wrote"), f.path("read"), f.path("path") + " read by Python");
            equal(
                f.path("wrote").asText(),
                digest(new Path(f.path("path").asText())),
                f.path("path") + " read by Hadoop");
          }
        });
  }

  private String digest(Path path) throws IOException {
    try (FSDataInputStream in = cluster.fs().open(path)) {
      return Data.digest(in);
    }
  }

  private static String command(List<String> words) throws Exception {
    Process p = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    p.getOutputStream().close();
    String out = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    equal(0, p.waitFor(), "exit code of " + String.join(" ", words));
    return out;
  }

  private String fs(String... args) throws Exception {
    List<String> words = new ArrayList<>(List.of(x.cairn().getPath(), "--fs", cluster.uri(), "fs"));
    words.addAll(List.of(args));
    return command(words);
  }

  private void cairn() {
    Map<String, Long> lengths = new LinkedHashMap<>();
    lengths.put("0 B", 0L);
    lengths.put("1 B", 1L);
    lengths.put("cell", MIB);
    lengths.put("cell+1", MIB + 1);
    lengths.put("64 MiB", 64 * MIB);
    FileTests.redundancies()
        .forEach(
            (name, policy) -> {
              long k = policy == null ? 2 : policy.getNumDataUnits();
              Map<String, Long> own = new LinkedHashMap<>(lengths);
              own.put("stripe-1", k * MIB - 1);
              own.put("stripe", k * MIB);
              own.put("stripe+1", k * MIB + 1);
              own.forEach((label, length) -> both(name, label, length));
            });
    both("RS-3-2-1024k", "two block groups", 400 * MIB);
    if (x.full()) {
      both("RS-6-3-1024k", "1 GiB", 1024 * MIB);
    }
    commands();
  }

  /** One content, written by either client and read by the other. */
  private void both(String redundancy, String label, long length) {
    File local = new File(x.work(), "cross-local");
    Path dir = new Path("/cross/" + redundancy);
    String file = label.replace(' ', '-');
    runner.test(
        "cross/Cairn writes, Hadoop reads/" + redundancy + "/" + label,
        () -> {
          try (OutputStream out = new FileOutputStream(local)) {
            Data.copy(new Data.Source(length + 1, length), out);
          }
          Path remote = new Path(dir, file + "-by-cairn");
          fs("put", local.getPath(), remote.toUri().getPath());
          equal(length, cluster.fs().getFileStatus(remote).getLen(), "length");
          equal(Data.digest(length + 1, length), digest(remote), "SHA-256");
        });
    runner.test(
        "cross/Hadoop writes, Cairn reads/" + redundancy + "/" + label,
        () -> {
          File back = new File(x.work(), "cross-back");
          FileSystem.closeAll();
          Path remote = new Path(dir, file + "-by-hadoop");
          String sha = FileTests.store(cluster.fs(), remote, length + 2, length, 128 * MIB);
          check(!back.exists() || back.delete(), "no file from before");
          fs("get", remote.toUri().getPath(), back.getPath());
          equal(sha, Data.digest(back), "SHA-256");
        });
  }

  private void commands() {
    runner.test(
        "cross/cairn fs checksum equals Hadoop's",
        () -> {
          for (String dir : List.of("RS-6-3-1024k", "3x")) {
            Path path = new Path("/cross/" + dir, "64-MiB-by-hadoop");
            FileChecksum sum = cluster.fs().getFileChecksum(path);
            String hex = HexFormat.of().formatHex(sum.getBytes(), 0, sum.getLength());
            String seen = fs("checksum", path.toUri().getPath());
            check(seen.contains(hex), path + ": wanted " + hex + " in " + seen);
          }
        });
    runner.test(
        "cross/cairn fs mkdir, ls, mv, rm, du, stat, cat",
        () -> {
          File local = new File(x.work(), "small");
          try (OutputStream out = new FileOutputStream(local)) {
            out.write("hello\n".getBytes(StandardCharsets.UTF_8));
          }
          fs("mkdir", "/own");
          fs("put", local.getPath(), "/own/a");
          equal("hello\n", fs("cat", "/own/a"), "cat");
          check(fs("ls", "/own").contains("/own/a"), "ls names the file");
          check(fs("du", "/own").contains("6"), "du tells the length");
          check(fs("stat", "/own/a").contains("6"), "stat tells the length");
          fs("mv", "/own/a", "/own/b");
          check(cluster.fs().exists(new Path("/own/b")), "the file has moved");
          fs("rm", "/own/b");
          check(!cluster.fs().exists(new Path("/own/b")), "the file is gone");
        });
    runner.test(
        "cross/cairn ec and cairn report",
        () -> {
          List<String> ec =
              new ArrayList<>(List.of(x.cairn().getPath(), "--fs", cluster.uri(), "ec"));
          List<String> set = new ArrayList<>(ec);
          set.addAll(List.of("-setPolicy", "-path", "/own", "-policy", "RS-3-2-1024k"));
          command(set);
          equal(
              "RS-3-2-1024k",
              cluster.fs().getErasureCodingPolicy(new Path("/own")).getName(),
              "policy as Hadoop sees it");
          List<String> get = new ArrayList<>(ec);
          get.addAll(List.of("-getPolicy", "-path", "/own"));
          equal("RS-3-2-1024k", command(get).trim(), "policy as cairn sees it");
          JsonNode report =
              new ObjectMapper()
                  .readTree(command(List.of(x.cairn().getPath(), "--fs", cluster.uri(), "--json", "report")));
          check(!report.isEmpty(), "the report is a JSON object with members");
        });
  }
}
