package cairn.interop;

import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;

/** What is under test: Cairn's binary, or Hadoop's own daemons behind the same command line. */
final class Target {
  /** The {@code cairn} binary; null when the target is Hadoop. */
  final File cairn;

  Target(File cairn) {
    this.cairn = cairn;
  }

  boolean isHadoop() {
    return cairn == null;
  }

  String label() {
    return isHadoop() ? "Hadoop 3.5.0" : "Cairn";
  }

  /** Starts a process of the target with {@code arguments}; its standard error goes to the end of {@code log}. */
  Process launch(List<String> arguments, File log) throws IOException {
    List<String> command = new ArrayList<>();
    if (isHadoop()) {
      command.add(System.getProperty("java.home") + "/bin/java");
      command.addAll(List.of("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4"));
      command.addAll(List.of("-cp", System.getProperty("java.class.path")));
      command.add("-Dlog4j.configuration=log4j-stderr.properties");
      // Where metaSave writes.
      command.add("-Dhadoop.log.dir=" + log.getParent());
      if (arguments.stream().anyMatch(a -> a.startsWith("dfs.domain.socket.path="))) {
        command.add("-Djava.library.path=" + ShortCircuitTests.library());
      }
      command.add(Daemons.class.getName());
    } else {
      command.add(cairn.getPath());
    }
    command.addAll(arguments);
    return new ProcessBuilder(command)
        .redirectError(ProcessBuilder.Redirect.appendTo(log))
        .start();
  }

  /** Cuts the waits of a client down to what a test can afford, and gives it its own connections. */
  static Configuration impatient(Configuration conf) {
    conf.set("dfs.client.socket-timeout", "5000");
    conf.set("dfs.checksum.ec.socket-timeout", "3000");
    conf.set("ipc.client.connect.max.retries", "3");
    conf.set("dfs.client.retry.window.base", "100");
    // A small machine and many nodes on one disk: no place for load-dependent surprises.
    conf.set("dfs.client.block.write.locateFollowingBlock.retries", "8");
    return conf;
  }

  /** Whether the NameNode is in safe mode; also while only a connection from before its restart is known. */
  static boolean isStarting(DistributedFileSystem fs) throws IOException {
    try {
      return fs.setSafeMode(SafeModeAction.GET);
    } catch (EOFException | SocketException e) {
      return true;
    }
  }

  static void waitForLive(DistributedFileSystem fs, int n) throws Exception {
    long end = System.nanoTime() + 60_000_000_000L;
    while (fs.getDataNodeStats(DatanodeReportType.LIVE).length < n) {
      if (System.nanoTime() > end) {
        throw new IOException("fewer than " + n + " live DataNodes after 60 s");
      }
      Thread.sleep(50);
    }
  }
}
