package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.server.protocol.DatanodeStorageReport;
import org.apache.hadoop.hdfs.server.protocol.StorageReport;

/** Volumes that come to a DataNode and leave it while it runs, by {@code dfsadmin -reconfig}. */
final class VolumeTests {
  private static final long MIB = 1 << 20;

  private final Main.Context x;
  private final File data;
  private final File conf;
  private final int xfer = Ports.free();
  private final int ipc = Ports.free();
  private final int http = Ports.free();

  private VolumeTests(Main.Context x) throws IOException {
    this.x = x;
    data = new File(x.work(), "volumes");
    conf = new File(data, "own");
  }

  static void run(Main.Context x) throws Exception {
    x.runner()
        .test(
            "volumes/one comes and one leaves a running DataNode, and what it had is copied",
            () -> new VolumeTests(x).change());
  }

  private void change() throws Exception {
    try (Roles roles = new Roles(x.target(), data, 2, x.keys())) {
      DistributedFileSystem fs = roles.fs();
      writeSite(fs, "one");
      List<String> args = List.of("datanode", "--conf", conf.getPath());
      Process third = x.target().launch(args, new File(data, "third.log"));
      try {
        check(third.inputReader(StandardCharsets.UTF_8).readLine() != null, "it does not start");
        roles.waitReady(3);
        Path file = new Path("/f");
        String digest = FileTests.store(fs, file, 1, 3 * MIB, MIB);
        Set<String> first = storages(fs);
        equal(1, first.size(), "storages");
        await(fs, file, first);

        String changed = "SUCCESS: Changed property dfs.datanode.data.dir";
        String told = reconfigure(fs, "one", "two");
        check(told.contains(changed), told);
        awaitStorages(fs, 2);
        told = reconfigure(fs, "two");
        check(told.contains(changed), told);
        awaitStorages(fs, 1);
        Set<String> second = storages(fs);
        check(!second.equals(first), "another storage");
        await(fs, file, second);
        try (FSDataInputStream in = fs.open(file)) {
          equal(digest, Data.digest(in), "SHA-256");
        }

        Files.writeString(new File(data, "three").toPath(), "no folder");
        told = reconfigure(fs, "two", "three");
        check(told.contains("FAILED TO ADD: [DISK]file:" + new File(data, "three")), told);
        equal(second, storages(fs), "storages");
      } finally {
        third.destroyForcibly().waitFor();
      }
    }
  }

  private void writeSite(DistributedFileSystem fs, String... volumes) throws IOException {
    conf.mkdirs();
    Configuration keys = new Configuration(false);
    x.keys().forEach(keys::set);
    keys.set("fs.defaultFS", fs.getUri().toString());
    keys.set("dfs.datanode.address", "127.0.0.1:" + xfer);
    keys.set("dfs.datanode.ipc.address", "127.0.0.1:" + ipc);
    keys.set("dfs.datanode.http.address", "127.0.0.1:" + http);
    List<String> folders = new ArrayList<>();
    for (String volume : volumes) {
      folders.add(new File(data, volume).toURI().toString());
    }
    keys.set("dfs.datanode.data.dir", String.join(",", folders));
    for (String name : List.of("core-site.xml", "hdfs-site.xml")) {
      try (OutputStream out = new FileOutputStream(new File(conf, name))) {
        keys.writeXml(out);
      }
    }
  }

  /** Names other volumes and has the DataNode read that; returns what it says of it. */
  private String reconfigure(DistributedFileSystem fs, String... volumes) throws Exception {
    writeSite(fs, volumes);
    equal(0, admin(fs, "start").code(), "exit code");
    Runner.await(
        60,
        () -> "a reconfiguration ends: " + admin(fs, "status").text(),
        () -> admin(fs, "status").text().contains("finished at"));
    return admin(fs, "status").text();
  }

  private Shell.Result admin(DistributedFileSystem fs, String what) throws Exception {
    String[] args = {"-reconfig", "datanode", "127.0.0.1:" + ipc, what};
    return Shell.run(fs.getConf(), null, "admin", args, new byte[0]);
  }

  /** The storages of the DataNode. */
  private Set<String> storages(DistributedFileSystem fs) throws IOException {
    Set<String> found = new TreeSet<>();
    for (DatanodeStorageReport node : fs.getClient().getDatanodeStorageReport(DatanodeReportType.LIVE)) {
      if (node.getDatanodeInfo().getXferPort() == xfer) {
        for (StorageReport storage : node.getStorageReports()) {
          if (!storage.isFailed()) {
            found.add(storage.getStorage().getStorageID());
          }
        }
      }
    }
    return found;
  }

  private void awaitStorages(DistributedFileSystem fs, int count) throws Exception {
    Runner.await(
        60, () -> count + " storages, not " + storages(fs), () -> storages(fs).size() == count);
  }

  /** Waits until each block has three replicas, one of them on a storage of {@code of}. */
  private static void await(DistributedFileSystem fs, Path file, Set<String> of) throws Exception {
    Runner.await(
        60,
        () -> "three replicas of all of " + wrong(fs, file, of) + ", one on any of " + of,
        () -> wrong(fs, file, of).isEmpty());
  }

  /** Blocks, with their storages, that have not three replicas or none on {@code of}. */
  private static List<String> wrong(DistributedFileSystem fs, Path file, Set<String> of) throws IOException {
    List<String> wrong = new ArrayList<>();
    String src = file.toUri().getPath();
    for (LocatedBlock b : fs.getClient().getLocatedBlocks(src, 0, Long.MAX_VALUE).getLocatedBlocks()) {
      List<String> on = Arrays.asList(b.getStorageIDs());
      if (on.size() != 3 || on.stream().noneMatch(of::contains)) {
        wrong.add(b.getBlock() + " on " + on);
      }
    }
    return wrong;
  }
}
