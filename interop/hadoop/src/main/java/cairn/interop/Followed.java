package cairn.interop;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.concurrent.FutureTask;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** {@code fs -tail -f}, which ends only when it is interrupted. */
final class Followed {
  private Followed() {}

  /** Follows a file, appends each of {@code more} when what came before was printed, and ends the command. */
  static Shell.Result run(Configuration conf, String user, String path, String... more) throws Exception {
    DistributedFileSystem fs = (DistributedFileSystem) FileSystem.get(conf);
    FileStatus status = fs.getFileStatus(new Path(path));
    ByteArrayOutputStream seen = new ByteArrayOutputStream();
    String[] args = {"-tail", "-f", "-s", "200", path};
    FutureTask<Shell.Result> task =
        new FutureTask<>(() -> Shell.run(conf, user, "fs", args, new byte[0], seen));
    Thread thread = new Thread(task, "tail -f");
    thread.start();
    long length = Math.min(status.getLen(), 1024);
    awaitPause(thread, seen, length);
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.APPEND);
    if (status.isErasureCoded()) {
      flags.add(CreateFlag.NEW_BLOCK);
    }
    for (String text : more) {
      byte[] bytes = text.replace("\\n", "\n").getBytes(StandardCharsets.UTF_8);
      try (FSDataOutputStream out = fs.append(status.getPath(), flags, 4096, null)) {
        out.write(bytes);
      }
      length += bytes.length;
      awaitPause(thread, seen, length);
    }
    thread.interrupt();
    return task.get();
  }

  /** Waits until so much was printed, and the command sleeps: it must not be interrupted in the middle of a call. */
  private static void awaitPause(Thread thread, ByteArrayOutputStream seen, long length) throws Exception {
    Runner.await(
        30,
        () -> seen.size() + " of " + length + " bytes printed: " + seen,
        () -> !thread.isAlive() || seen.size() >= length && isAsleep(thread));
  }

  private static boolean isAsleep(Thread thread) {
    StackTraceElement[] stack = thread.getStackTrace();
    for (StackTraceElement frame : stack) {
      if (!frame.getMethodName().startsWith("sleep")) {
        return frame != stack[0] && frame.getClassName().equals("org.apache.hadoop.fs.shell.Tail");
      }
    }
    return false;
  }
}
