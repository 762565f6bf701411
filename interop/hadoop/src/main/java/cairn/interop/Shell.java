package cairn.interop;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.hdfs.tools.CacheAdmin;
import org.apache.hadoop.hdfs.tools.CryptoAdmin;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.hdfs.tools.DFSck;
import org.apache.hadoop.hdfs.tools.DebugAdmin;
import org.apache.hadoop.hdfs.tools.ECAdmin;
import org.apache.hadoop.hdfs.tools.GetConf;
import org.apache.hadoop.hdfs.tools.GetGroups;
import org.apache.hadoop.hdfs.tools.StoragePolicyAdmin;
import org.apache.hadoop.hdfs.tools.snapshot.LsSnapshot;
import org.apache.hadoop.hdfs.tools.snapshot.LsSnapshottableDir;
import org.apache.hadoop.hdfs.tools.snapshot.SnapshotDiff;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Runs {@code hdfs dfs}, {@code ec}, {@code dfsadmin}, {@code fsck}, {@code getconf} and their like in this JVM and captures what they print. */
final class Shell {
  /** What one command left behind. */
  record Result(int code, byte[] out, String err) {
    String text() {
      return new String(out, StandardCharsets.UTF_8);
    }
  }

  private Shell() {}

  /** Runs tool {@code name} ({@code fs}, {@code ec}, {@code admin}, {@code fsck}, {@code storagepolicies} or {@code debug}) as {@code user}; null is the user of this process. */
  static Result run(Configuration conf, String user, String name, String[] args, byte[] stdin)
      throws Exception {
    return run(conf, user, name, args, stdin, new ByteArrayOutputStream());
  }

  /** The same, with standard output in {@code outBytes} as it is printed. */
  static Result run(
      Configuration conf,
      String user,
      String name,
      String[] args,
      byte[] stdin,
      ByteArrayOutputStream outBytes)
      throws Exception {
    UserGroupInformation ugi =
        user == null
            ? UserGroupInformation.getLoginUser()
            : UserGroupInformation.createRemoteUser(user);
    PrintStream out = System.out;
    PrintStream err = System.err;
    InputStream in = System.in;
    ByteArrayOutputStream errBytes = new ByteArrayOutputStream();
    System.setOut(new PrintStream(outBytes, true, StandardCharsets.UTF_8));
    System.setErr(new PrintStream(errBytes, true, StandardCharsets.UTF_8));
    System.setIn(new ByteArrayInputStream(stdin));
    int code;
    try {
      code =
          ugi.doAs(
              (PrivilegedExceptionAction<Integer>)
                  () -> {
                    // The runner writes -D keys into the configuration it is given.
                    Configuration own = new Configuration(conf);
                    return ToolRunner.run(own, tool(name, own), args);
                  });
    } finally {
      System.out.flush();
      System.err.flush();
      System.setOut(out);
      System.setErr(err);
      System.setIn(in);
    }
    return new Result(code, outBytes.toByteArray(), errBytes.toString(StandardCharsets.UTF_8));
  }

  private static Tool tool(String name, Configuration conf) throws IOException {
    return switch (name) {
      case "fs" -> new FsShell(conf);
      case "ec" -> new ECAdmin(conf);
      case "admin" -> new DFSAdmin(conf);
      case "fsck" -> new DFSck(conf, System.out);
      case "storagepolicies" -> new StoragePolicyAdmin(conf);
      case "debug" -> new DebugAdmin(conf);
      case "cacheadmin" -> new CacheAdmin(conf);
      case "crypto" -> new CryptoAdmin(conf);
      case "getconf" -> getConf(conf);
      case "groups" -> new GetGroups(conf, System.out);
      case "lsSnapshottableDir" -> new LsSnapshottableDir();
      case "lsSnapshot" -> new LsSnapshot();
      case "snapshotDiff" -> new SnapshotDiff(conf);
      default -> throw new IllegalArgumentException("unknown tool " + name);
    };
  }

  /** The constructor is for Hadoop's own main method only, which ends the process. */
  private static Tool getConf(Configuration conf) throws IOException {
    try {
      var made = GetConf.class.getDeclaredConstructor(Configuration.class);
      made.setAccessible(true);
      return made.newInstance(conf);
    } catch (ReflectiveOperationException e) {
      throw new IOException(e);
    }
  }
}
