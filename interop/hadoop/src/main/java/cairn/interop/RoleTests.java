package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

/** NameNode and DataNodes as separate processes: signals in the middle of writes and reads, and lease recovery. */
final class RoleTests {
  private static final long MIB = 1 << 20;

  private final Main.Context x;
  private final Runner runner;
  private final Roles roles;

  private RoleTests(Main.Context x, Roles roles) {
    this.x = x;
    this.runner = x.runner();
    this.roles = roles;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("roles/")) {
      return;
    }
    try (Roles roles = new Roles(x.target(), new File(x.work(), "roles"), 11, x.keys())) {
      FileTests.makeFolders(roles.fs(), "/roles");
      RoleTests t = new RoleTests(x, roles);
      t.writes();
      t.stopped();
      t.leases();
      t.nameNodeKilled();
      t.everythingKilled();
    }
  }

  /** Reads {@code in} and does {@code act} once, when {@code at} bytes have passed. */
  private static final class Tripwire extends InputStream {
    private final InputStream in;
    private final Runner.Body act;
    private long left;

    Tripwire(InputStream in, long at, Runner.Body act) {
      this.in = in;
      this.left = at;
      this.act = act;
    }

    @Override
    public int read() {
      throw new UnsupportedOperationException();
    }

    @Override
    public int read(byte[] b, int off, int len) throws IOException {
      int n = in.read(b, off, len);
      boolean before = left > 0;
      left -= Math.max(n, 0);
      if (before && left <= 0) {
        try {
          act.run();
        } catch (Throwable e) {
          throw new IOException(e);
        }
      }
      return n;
    }
  }

  private void writes() {
    killDuringWrite("RS-6-3-1024k", (x.full() ? 1024 : 512) * MIB, 1);
    killDuringWrite("RS-6-3-1024k", 256 * MIB, 3);
    killDuringWrite("RS-3-2-1024k", 256 * MIB, 2);
    killDuringWrite("3x", 256 * MIB, 1);
  }

  /** Kills {@code count} of the nodes that are being written to after a third of the bytes. */
  private void killDuringWrite(String redundancy, long length, int count) {
    String name =
        "roles/kill -9 of " + count + " DataNode(s) during a write/" + redundancy + " " + length / MIB + " MiB";
    runner.test(
        name,
        () -> {
          DistributedFileSystem fs = roles.fs();
          Path path = new Path("/roles/" + redundancy, "w" + count + "-" + length / MIB);
          List<Integer> killed = new ArrayList<>();
          Runner.Body kill =
              () -> {
                DatanodeInfo[] targets =
                    fs.getClient().getLocatedBlocks(path.toUri().getPath(), 0, Long.MAX_VALUE)
                        .getLastLocatedBlock().getLocations();
                for (int i = 0; i < count; i++) {
                  int index = roles.indexOf(targets[(2 * i + 1) % targets.length]);
                  roles.killDataNode(index);
                  killed.add(index);
                }
              };
          String sha;
          try (OutputStream out = fs.create(path, true, 64 * 1024, (short) 3, 128 * MIB)) {
            sha = Data.copy(new Tripwire(new Data.Source(length + count, length), length / 3, kill), out);
          }
          equal(count, killed.size(), "killed DataNodes");
          equal(length, fs.getFileStatus(path).getLen(), "length by the NameNode");
          equal(sha, digest(fs, path), "SHA-256 with the nodes still gone");
          for (int i : killed) {
            roles.startDataNode(i);
          }
          roles.waitReady(11);
          FileSystem.closeAll();
          equal(sha, digest(roles.fs(), path), "SHA-256 with the nodes back");
        });
  }

  private static String digest(FileSystem fs, Path path) throws IOException {
    try (FSDataInputStream in = fs.open(path)) {
      return Data.digest(in);
    }
  }

  /** A node that is stopped by SIGSTOP accepts connections and says nothing: only time tells. */
  private void stopped() {
    for (Map.Entry<String, Integer> e :
        new TreeMap<>(Map.of("RS-3-2-1024k", 2, "RS-6-3-1024k", 3)).entrySet()) {
      String redundancy = e.getKey();
      runner.test(
          "roles/read while " + e.getValue() + " DataNodes hang/" + redundancy,
          () -> {
            Path path = new Path("/roles/" + redundancy, "hang");
            String sha = FileTests.store(roles.fs(), path, 77, 20 * MIB + 1, 128 * MIB);
            LocatedBlocks blocks =
                roles.fs().getClient().getLocatedBlocks(path.toUri().getPath(), 0, Long.MAX_VALUE);
            List<Integer> hung = new ArrayList<>();
            for (int i = 0; i < e.getValue(); i++) {
              hung.add(roles.indexOf(blocks.get(0).getLocations()[i]));
            }
            try {
              for (int i : hung) {
                roles.signalDataNode(i, "STOP");
              }
              Configuration hasty = roles.conf();
              hasty.set("dfs.client.socket-timeout", "1500");
              try (FileSystem fs = FileSystem.newInstance(hasty)) {
                equal(sha, digest(fs, path), "SHA-256");
              }
            } finally {
              for (int i : hung) {
                roles.signalDataNode(i, "CONT");
              }
            }
          });
    }
  }

  /** A writer that vanishes leaves its flushed bytes; recoverLease closes the file. */
  private void leases() {
    runner.test(
        "roles/recoverLease closes a file whose writer is gone and keeps the flushed bytes",
        () -> {
          Path path = new Path("/roles/3x/lease");
          byte[] bytes = new Data.Source(5, 3 * MIB + 17).readAllBytes();
          FileSystem writer = FileSystem.newInstance(roles.conf());
          FSDataOutputStream out = writer.create(path);
          out.write(bytes);
          out.hsync();
          DistributedFileSystem fs = roles.fs();
          check(!fs.isFileClosed(path), "the file is open");
          try (FSDataInputStream in = fs.open(path)) {
            equal(Data.digest(5, bytes.length), Data.digest(in), "SHA-256 while open");
          }
          Runner.await("the lease is recovered", () -> fs.recoverLease(path));
          equal((long) bytes.length, fs.getFileStatus(path).getLen(), "length");
          equal(Data.digest(5, bytes.length), digest(fs, path), "SHA-256");
          try {
            out.write(1);
            out.close();
          } catch (IOException e) {
            return;
          }
          throw new AssertionError("the old writer could still complete the file");
        });
    runner.test(
        "roles/recoverLease closes an erasure-coded file at a length that reads back",
        () -> {
          Path path = new Path("/roles/RS-6-3-1024k/lease");
          byte[] bytes = new Data.Source(6, 40 * MIB).readAllBytes();
          FileSystem writer = FileSystem.newInstance(roles.conf());
          FSDataOutputStream out = writer.create(path);
          out.write(bytes);
          Thread.sleep(1000);
          DistributedFileSystem fs = roles.fs();
          Runner.await("the lease is recovered", () -> fs.recoverLease(path));
          long length = fs.getFileStatus(path).getLen();
          check(length > 0 && length <= bytes.length, "length " + length);
          equal(Data.digest(6, length), digest(fs, path), "SHA-256");
        });
  }

  private void nameNodeKilled() {
    runner.test(
        "roles/kill -9 of the NameNode during a write, and restart: the write goes on",
        () -> {
          Path path = new Path("/roles/RS-3-2-1024k/across");
          Configuration patient = roles.conf();
          patient.set("dfs.client.retry.policy.enabled", "true");
          Runner.Body restart =
              () -> {
                roles.killNameNode();
                roles.startNameNode();
              };
          long length = 1000 * MIB;
          String sha;
          try (FileSystem fs = FileSystem.newInstance(patient)) {
            roles.fs().mkdirs(new Path("/before/the/kill"));
            try (OutputStream out = fs.create(path)) {
              sha = Data.copy(new Tripwire(new Data.Source(9, length), length / 2, restart), out);
            }
          }
          FileSystem.closeAll();
          roles.waitReady(11);
          check(roles.fs().exists(new Path("/before/the/kill")), "an acknowledged mkdirs is lost");
          equal(sha, digest(roles.fs(), path), "SHA-256");
        });
  }

  private void everythingKilled() {
    runner.test(
        "roles/kill -9 of every process right after close loses nothing",
        () -> {
          Path ec = new Path("/roles/RS-6-3-1024k/last");
          Path rep = new Path("/roles/3x/last");
          String a = FileTests.store(roles.fs(), ec, 1, 33 * MIB + 5, 128 * MIB);
          String b = FileTests.store(roles.fs(), rep, 2, 33 * MIB + 5, 128 * MIB);
          roles.killAll();
          roles.startNameNode();
          check(roles.fs().setSafeMode(SafeModeAction.GET), "safe mode while no block is reported");
          try {
            roles.fs().mkdirs(new Path("/too/early"));
            throw new AssertionError("safe mode let a change through");
          } catch (IOException e) {
            check(e.getMessage().contains("Name node is in safe mode"), e.getMessage());
          }
          roles.startAllDataNodes();
          equal(a, digest(roles.fs(), ec), "SHA-256 of the striped file");
          equal(b, digest(roles.fs(), rep), "SHA-256 of the replicated file");
        });
    runner.test(
        "roles/SIGTERM stops every process, and a restart serves the same files",
        () -> {
          Path path = new Path("/roles/RS-6-3-1024k/term");
          String sha = FileTests.store(roles.fs(), path, 3, 9 * MIB, 128 * MIB);
          equal(0, roles.terminateAll(), "processes that did not stop in 10 s");
          roles.startNameNode();
          roles.startAllDataNodes();
          equal(sha, digest(roles.fs(), path), "SHA-256");
        });
  }
}
