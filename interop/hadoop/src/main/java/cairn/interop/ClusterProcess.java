package cairn.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;

/** One running cluster (one process with a NameNode and N DataNodes), of Cairn or of Hadoop. */
final class ClusterProcess implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long START_SECONDS = 120;

  private final Target target;
  private final List<String> arguments = new ArrayList<>();
  private final File log;
  private Process process;
  private BufferedReader out;
  private JsonNode line;

  /** Starts a cluster of {@code datanodes} nodes over {@code racks} racks on the files in {@code data}. */
  ClusterProcess(Target target, File data, int datanodes, int racks, Map<String, String> keys)
      throws Exception {
    this(target, data, datanodes, racks, keys, null);
  }

  /** The same with volumes of the types in {@code storage} on each node. */
  ClusterProcess(
      Target target, File data, int datanodes, int racks, Map<String, String> keys, String storage)
      throws Exception {
    this.target = target;
    this.log = new File(data.getPath() + ".log");
    data.mkdirs();
    arguments.addAll(List.of("cluster", "--datanodes", "" + datanodes, "--racks", "" + racks));
    arguments.addAll(List.of("--data", data.getPath()));
    arguments.addAll(List.of("--rpc-port", "" + Ports.free(), "--http-port", "" + Ports.free()));
    if (storage != null) {
      arguments.addAll(List.of("--storage", storage));
    }
    keys.forEach((k, v) -> arguments.addAll(List.of("-D", k + "=" + v)));
    start();
  }

  /** Starts the process and waits until it says that it serves and has left safe mode. */
  void start() throws Exception {
    process = target.launch(arguments, log);
    out = process.inputReader(StandardCharsets.UTF_8);
    line = answer(START_SECONDS);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
    while (Target.isStarting(fs())) {
      if (System.nanoTime() > end) {
        throw new IOException("the cluster does not leave safe mode");
      }
      Thread.sleep(100);
    }
    waitForLive(nodeCount());
  }

  private JsonNode answer(long seconds) throws Exception {
    CompletableFuture<String> read =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return out.readLine();
              } catch (IOException e) {
                return null;
              }
            });
    String text;
    try {
      text = read.get(seconds, TimeUnit.SECONDS);
    } catch (TimeoutException | ExecutionException e) {
      throw new IOException("the cluster gave no answer in " + seconds + " s; see " + log, e);
    }
    if (text == null) {
      throw new IOException("the cluster process ended; see " + log);
    }
    return JSON.readTree(text);
  }

  private void command(String words) throws Exception {
    OutputStream in = process.getOutputStream();
    in.write((words + "\n").getBytes(StandardCharsets.UTF_8));
    in.flush();
    JsonNode a = answer(60);
    if (!a.path("ok").asBoolean()) {
      throw new IOException(words + ": " + a);
    }
  }

  /** Stops DataNode {@code i} without a word to the NameNode. */
  void killDataNode(int i) throws Exception {
    command("kill-datanode " + i);
  }

  /** Starts DataNode {@code i} again on its own files. */
  void startDataNode(int i) throws Exception {
    command("start-datanode " + i);
  }

  /** Ends the whole cluster by SIGKILL. */
  void kill() throws Exception {
    FileSystem.closeAll();
    process.destroyForcibly().waitFor();
  }

  /** Ends the whole cluster by SIGKILL and starts it again; file systems stay open. */
  void restart() throws Exception {
    process.destroyForcibly().waitFor();
    start();
  }

  int nodeCount() {
    return line.path("datanodes").size();
  }

  JsonNode describe() {
    return line;
  }

  File log() {
    return log;
  }

  String uri() {
    return line.path("fs").asText();
  }

  String httpAddress() {
    return line.path("http").asText().replace("http://", "");
  }

  String confDir() {
    return line.path("conf").asText();
  }

  /** The index of each DataNode by its UUID. */
  Map<String, Integer> indexByUuid() {
    Map<String, Integer> m = new HashMap<>();
    for (JsonNode n : line.path("datanodes")) {
      m.put(n.path("uuid").asText(), n.path("index").asInt());
    }
    return m;
  }

  /** What a stock client reads from the cluster's own folder, with waits cut short for tests. */
  Configuration conf() {
    Configuration conf = new HdfsConfiguration();
    conf.addResource(new Path(confDir(), "core-site.xml"));
    conf.addResource(new Path(confDir(), "hdfs-site.xml"));
    return Target.impatient(conf);
  }

  DistributedFileSystem fs() throws IOException {
    return (DistributedFileSystem) FileSystem.get(conf());
  }

  /** Waits until the NameNode counts {@code n} live DataNodes. */
  void waitForLive(int n) throws Exception {
    Target.waitForLive(fs(), n);
  }

  /** The index of the DataNode that {@code node} is. */
  int indexOf(DatanodeInfo node) {
    return indexByUuid().get(node.getDatanodeUuid());
  }

  int live() throws IOException {
    return fs().getDataNodeStats(DatanodeReportType.LIVE).length;
  }

  /** Asks the process to stop, and insists after ten seconds. */
  @Override
  public void close() throws Exception {
    FileSystem.closeAll();
    process.destroy();
    if (!process.waitFor(10, TimeUnit.SECONDS)) {
      process.destroyForcibly().waitFor();
    }
  }
}
