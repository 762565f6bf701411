package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;

/** Cairn's client on a nameservice of Hadoop, and Cairn's DataNodes under one, whose active NameNode changes and dies. */
final class NameserviceTests implements AutoCloseable {
  private static final int DATA_NODES = 5;
  private static final int FILES = 80;

  private final Main.Context x;
  private final File work;
  private final Process service;
  private final BufferedReader answers;
  private final String conf;
  private final List<Process> dataNodes = new ArrayList<>();

  private NameserviceTests(Main.Context x, String name, int dataNodes) throws Exception {
    this.x = x;
    work = new File(x.work(), name);
    work.mkdirs();
    List<String> words = new ArrayList<>(List.of("nameservice", "--data", work.getPath()));
    words.addAll(List.of("--datanodes", "" + dataNodes));
    words.addAll(List.of("-D", "dfs.heartbeat.interval=1"));
    words.addAll(List.of("-D", "dfs.namenode.heartbeat.recheck-interval=1000"));
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
    try (NameserviceTests t = new NameserviceTests(x, "nameservice", DATA_NODES)) {
      x.runner().test("nameservice/files outlive a failover", t::files);
      x.runner().test("nameservice/a put goes on while the active NameNode changes", t::failoverDuringPut);
      x.runner().test("nameservice/a put goes on when the active NameNode dies", t::deathDuringPut);
    }
    try (NameserviceTests t = new NameserviceTests(x, "nameservice-datanodes", 0)) {
      x.runner().test("nameservice/DataNodes of Cairn report to both and obey the active one", t::ownDataNodes);
      x.runner().test("nameservice/DataNodes of Cairn follow when the active one dies", t::ownDataNodesAfterDeath);
    }
  }

  @Override
  public void close() {
    dataNodes.forEach(Process::destroyForcibly);
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

  private File folder(int dataNode) {
    return new File(work, "own" + dataNode);
  }

  private void startDataNode(int number) throws IOException {
    List<String> command = new ArrayList<>(List.of(x.cairn().getPath(), "--conf", conf, "datanode"));
    for (String key : List.of("address", "ipc.address", "http.address")) {
      command.addAll(List.of("-D", "dfs.datanode." + key + "=127.0.0.1:0"));
    }
    command.addAll(List.of("-D", "dfs.heartbeat.interval=1", "--data", folder(number).getPath()));
    File log = new File(work, "own" + number + ".log");
    dataNodes.add(
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
            .start());
  }

  private DistributedFileSystem fs() throws IOException {
    Configuration keys = Target.impatient(new HdfsConfiguration());
    keys.addResource(new Path(conf, "core-site.xml"));
    return (DistributedFileSystem) FileSystem.newInstance(keys);
  }

  private static void write(FileSystem fs, String path, long length) throws IOException {
    try (OutputStream out = fs.create(new Path(path))) {
      Data.copy(new Data.Source(length, length), out);
    }
  }

  private static void read(FileSystem fs, String path, long length) throws IOException {
    try (InputStream in = fs.open(new Path(path))) {
      equal(Data.digest(length, length), Data.digest(in), path);
    }
  }

  /** Replicas on all disks of Cairn's DataNodes. */
  private long replicas() throws IOException {
    long count = 0;
    for (int i = 0; i < dataNodes.size(); i++) {
      try (Stream<java.nio.file.Path> files = Files.walk(folder(i).toPath())) {
        count += files.filter(f -> f.getFileName().toString().matches("blk_-?[0-9]+")).count();
      }
    }
    return count;
  }

  private void awaitReplicas(long wanted, String what) throws Exception {
    long end = System.nanoTime() + 60_000_000_000L;
    while (replicas() != wanted) {
      check(System.nanoTime() < end, what + ": " + replicas() + " replicas, not " + wanted);
      Thread.sleep(100);
    }
  }

  private void ownDataNodes() throws Exception {
    for (int i = 0; i < DATA_NODES; i++) {
      startDataNode(i);
    }
    try (DistributedFileSystem fs = fs()) {
      Target.waitForLive(fs, DATA_NODES);
      fs.mkdirs(new Path("/ec"));
      fs.enableErasureCodingPolicy("RS-3-2-1024k");
      fs.setErasureCodingPolicy(new Path("/ec"), "RS-3-2-1024k");
      write(fs, "/ec/first", 10_000_001);
      write(fs, "/first", 3_000_001);
      write(fs, "/second", 3_000_002);
      awaitReplicas(5 + 3 + 3, "written");
      tell("failover");
      // The other one knows where everything is: all have told it.
      read(fs, "/ec/first", 10_000_001);
      read(fs, "/first", 3_000_001);
      write(fs, "/third", 3_000_003);
      check(fs.delete(new Path("/first"), false), "deleted");
      awaitReplicas(5 + 3 + 3, "the new active one has replicas deleted");
      // Hadoop deletes what is too much only when every DataNode has reported in full since it took over: Cairn's do so
      // at once.
      fs.setReplication(new Path("/second"), (short) 1);
      awaitReplicas(5 + 1 + 3, "what is too much is deleted after a failover");
      read(fs, "/second", 3_000_002);
      tell("failover");
      read(fs, "/third", 3_000_003);
      read(fs, "/second", 3_000_002);
      write(fs, "/ec/second", 4_000_004);
      read(fs, "/ec/second", 4_000_004);
      fs.setReplication(new Path("/second"), (short) 3);
      awaitReplicas(5 + 3 + 3 + 5, "the one that is active again has replicas made");
    }
  }

  private void ownDataNodesAfterDeath() throws Exception {
    try (DistributedFileSystem fs = fs()) {
      FSDataOutputStream open = fs.create(new Path("/open"));
      Data.copy(new Data.Source(1, 2_000_000), open);
      open.hflush();
      tell("kill");
      Data.copy(new Data.Source(2, 2_000_000), open);
      open.close();
      equal(4_000_000L, fs.getFileStatus(new Path("/open")).getLen(), "length of /open");
      for (String path : List.of("/second", "/third")) {
        read(fs, path, path.equals("/second") ? 3_000_002 : 3_000_003);
      }
      read(fs, "/ec/second", 4_000_004);
      // A lease is recovered by a DataNode, which tells the one that is active now.
      FSDataOutputStream left = fs.create(new Path("/left"));
      Data.copy(new Data.Source(3, 1_000_000), left);
      left.hflush();
      try (DistributedFileSystem other = fs()) {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!other.recoverLease(new Path("/left"))) {
          check(System.nanoTime() < end, "the lease is recovered");
          Thread.sleep(200);
        }
        equal(1_000_000L, other.getFileStatus(new Path("/left")).getLen(), "length of /left");
        // One DataNode less: what it had is made elsewhere.
        dataNodes.get(0).destroyForcibly().waitFor();
        long until = System.nanoTime() + 90_000_000_000L;
        while (other.getDataNodeStats(DatanodeReportType.LIVE).length >= DATA_NODES) {
          check(System.nanoTime() < until, "a DataNode is dead");
          Thread.sleep(100);
        }
        // Groups need five DataNodes, of which there are four.
        check(other.delete(new Path("/ec"), true), "deleted");
        while (other.getClient().getNamenode().getStats()[3] > 0) {
          check(System.nanoTime() < until, "what a dead DataNode had is made elsewhere");
          Thread.sleep(500);
        }
        check(cairn("fsck", "/").contains("is HEALTHY"), "all is whole again");
      }
      for (Process process : dataNodes.subList(1, dataNodes.size())) {
        check(process.isAlive(), "DataNodes live on with one NameNode");
      }
    }
  }
}
