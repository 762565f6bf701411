package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.CreateEncryptionZoneFlag;
import org.apache.hadoop.hdfs.client.HdfsAdmin;
import org.apache.hadoop.hdfs.protocol.EncryptionZone;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.ReencryptAction;
import org.apache.hadoop.hdfs.protocol.SnapshotStatus;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;
import org.apache.hadoop.hdfs.protocol.ZoneReencryptionStatus;
import org.apache.hadoop.hdfs.protocol.ZoneReencryptionStatus.State;

/** Encryption zones, with Hadoop's key server. */
final class EncryptionTests implements Transcript.Tools {
  private static final long PATIENCE_MS = 30_000;

  private static final EnumSet<CreateEncryptionZoneFlag> NO_FLAGS = EnumSet.noneOf(CreateEncryptionZoneFlag.class);

  private final Main.Context x;
  private final Kms kms;
  private final ClusterProcess cluster;

  private EncryptionTests(Main.Context x, Kms kms, ClusterProcess cluster) {
    this.x = x;
    this.kms = kms;
    this.cluster = cluster;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("encryption/")) {
      return;
    }
    try (Kms kms = new Kms(x.home(), new File(x.work(), "kms"))) {
      Map<String, String> keys = new HashMap<>(x.keys());
      keys.putAll(kms.settings());
      // All lists come in pieces, and so does what is encrypted again.
      keys.put("dfs.namenode.list.encryption.zones.num.responses", "2");
      keys.put("dfs.namenode.list.reencryption.status.num.responses", "1");
      keys.put("dfs.namenode.reencrypt.batch.size", "5");
      // Hadoop looks for what was left over only then.
      keys.put("dfs.namenode.reencrypt.sleep.interval", "200ms");
      try (ClusterProcess cluster =
          new ClusterProcess(x.target(), new File(x.work(), "encryption"), 9, 3, keys)) {
        EncryptionTests t = new EncryptionTests(x, kms, cluster);
        t.commands("crypto");
        EncryptedFileTests.run(x, kms, cluster);
        t.keyServerGone();
        t.keyServerHangs();
        t.restart();
        removeAll(cluster.fs());
        t.commands("root");
      }
    }
  }

  private static void removeAll(DistributedFileSystem fs) throws IOException {
    SnapshottableDirectoryStatus[] seen = fs.getSnapshottableDirListing();
    for (SnapshottableDirectoryStatus dir : seen == null ? new SnapshottableDirectoryStatus[0] : seen) {
      for (SnapshotStatus snapshot : fs.getSnapshotListing(dir.getFullPath())) {
        fs.deleteSnapshot(dir.getFullPath(), snapshot.getDirStatus().getLocalName());
      }
      fs.disallowSnapshot(dir.getFullPath());
    }
    for (FileStatus top : fs.listStatus(new Path("/"))) {
      fs.delete(top.getPath(), true);
    }
  }

  private void commands(String name) throws Exception {
    Map<String, String> words =
        Map.of("USER", System.getProperty("user.name"), "F", new File(x.work(), "small-file").getPath());
    Transcript t = new Transcript(new File(x.home(), "hadoop/cases/encryption/" + name + ".txt"));
    for (Transcript.Case c : t.cases) {
      String test = "encryption/" + name + "/" + c.name;
      File local = new File(x.work(), "local/" + test.replace(' ', '-'));
      x.runner()
          .test(
              test,
              () -> Transcript.run(c, x.target(), cluster.conf(), local, x.record(), words, this));
    }
    if (x.record()) {
      t.save();
    }
  }

  private static void fails(String what, Runner.Body body) throws Throwable {
    long start = System.nanoTime();
    try {
      body.run();
    } catch (IOException e) {
      long ms = (System.nanoTime() - start) / 1_000_000;
      check(ms < PATIENCE_MS, what + " failed only after " + ms + " ms");
      check(
          Pattern.compile("(?i)connect|kms|key provider|refused|closed|reset").matcher(e.toString()).find(),
          what + " does not say what is wrong: " + e);
      return;
    }
    throw new AssertionError(what + " succeeded");
  }

  /** Does what has nothing to do with keys, and takes care that nothing of it waits. */
  private void everythingElse(String name) throws Exception {
    DistributedFileSystem fs = cluster.fs();
    long start = System.nanoTime();
    Path outside = new Path("/outside", name);
    equal(FileTests.store(fs, outside, 1, 100_000, 1 << 20), EncryptedFileTests.digest(fs, outside), "SHA-256");
    Path zone = new Path("/service");
    fs.mkdirs(new Path(zone, name));
    fs.rename(new Path(zone, name), new Path(zone, name + "-2"));
    fs.delete(new Path(zone, name + "-2"), true);
    check(fs.getFileStatus(new Path(zone, "f")).isEncrypted(), "the zone is there");
    check(fs.listStatus(zone).length > 0, "the zone is listed");
    long ms = (System.nanoTime() - start) / 1_000_000;
    check(ms < 5000, "what needs no key took " + ms + " ms");
  }

  /** A zone of its own key with one file. */
  private Path service() throws Exception {
    Path zone = new Path("/service");
    if (!cluster.fs().exists(zone)) {
      kms.make("service");
      EncryptedFileTests.makeZone(cluster.fs(), zone, "3x", "service");
      FileTests.store(cluster.fs(), new Path(zone, "f"), 5, 1000, 1 << 20);
    }
    return zone;
  }

  private void keyServerGone() {
    x.runner()
        .test(
            "encryption/without the key server nothing is created in zones, and all else goes on",
            () -> {
              Path zone = service();
              DistributedFileSystem fs = cluster.fs();
              kms.make("another");
              fs.mkdirs(new Path("/another"));
              HdfsAdmin admin = new HdfsAdmin(fs.getUri(), fs.getConf());
              kms.shut();
              fails("create", () -> FileTests.store(fs, new Path(zone, "g"), 6, 1000, 1 << 20));
              fails("open", () -> EncryptedFileTests.digest(fs, new Path(zone, "f")));
              fails(
                  "createZone",
                  () -> admin.createEncryptionZone(new Path("/another"), "another", NO_FLAGS));
              fails("reencrypt", () -> admin.reencryptEncryptionZone(zone, ReencryptAction.START));
              everythingElse("gone");
              kms.open();
              String sha = FileTests.store(fs, new Path(zone, "g"), 6, 1000, 1 << 20);
              equal(sha, EncryptedFileTests.digest(fs, new Path(zone, "g")), "SHA-256");
              admin.createEncryptionZone(new Path("/another"), "another", NO_FLAGS);
            });
  }

  private void keyServerHangs() {
    x.runner()
        .test(
            "encryption/while the key server hangs, all goes on that needs no key",
            () -> {
              Path zone = service();
              DistributedFileSystem fs = cluster.fs();
              kms.roll("service");
              kms.hold("_eek?");
              List<CompletableFuture<String>> writers = new ArrayList<>();
              for (int i = 0; i < 20; i++) {
                Path path = new Path(zone, "late-" + i);
                writers.add(
                    CompletableFuture.supplyAsync(
                        () -> {
                          try {
                            return FileTests.store(fs, path, 9, 1000, 1 << 20);
                          } catch (IOException e) {
                            throw new UncheckedIOException(e);
                          }
                        },
                        task -> new Thread(task).start()));
              }
              try {
                everythingElse("hangs-1");
                everythingElse("hangs-2");
                check(writers.stream().noneMatch(CompletableFuture::isDone), "the writers wait");
              } finally {
                kms.release();
              }
              for (int i = 0; i < writers.size(); i++) {
                String sha = writers.get(i).get(30, TimeUnit.SECONDS);
                equal(sha, EncryptedFileTests.digest(fs, new Path(zone, "late-" + i)), "SHA-256");
              }
            });
  }

  private void restart() {
    x.runner()
        .test(
            "encryption/zones, files and what is to be encrypted again outlive kill -9",
            () -> {
              kms.make("lasting");
              Map<Path, String> files = new LinkedHashMap<>();
              for (String redundancy : List.of("3x", "RS-6-3-1024k")) {
                Path zone = new Path("/lasting", redundancy);
                EncryptedFileTests.makeZone(cluster.fs(), zone, redundancy, "lasting");
                files.put(new Path(zone, "large"), FileTests.store(cluster.fs(), new Path(zone, "large"), 3, 9 << 20, 1 << 20));
                for (int i = 0; i < 12; i++) {
                  Path path = new Path(zone, "d" + i % 3 + "/f" + i);
                  files.put(path, FileTests.store(cluster.fs(), path, i, 10, 1 << 20));
                }
              }
              Path own = new Path("/lasting/3x");
              cluster.fs().allowSnapshot(own);
              cluster.fs().createSnapshot(own, "s");
              HdfsAdmin admin = new HdfsAdmin(cluster.fs().getUri(), cluster.conf());
              kms.roll("lasting");
              kms.hold("_reencryptbatch");
              admin.reencryptEncryptionZone(own, ReencryptAction.START);
              check(status(cluster.fs(), own.toString()).getState() != State.Completed, "it waits for the keys");
              cluster.restart();
              kms.release();
              ZoneReencryptionStatus status = awaitReencrypted(cluster.fs(), own.toString());
              equal(13L, status.getFilesReencrypted(), "files of the zone");
              equal(0L, status.getNumReencryptionFailures(), "failures");
              equal("lasting@1", status.getEzKeyVersionName(), "version of the key");
              List<String> zones = new ArrayList<>();
              RemoteIterator<EncryptionZone> all = cluster.fs().listEncryptionZones();
              while (all.hasNext()) {
                EncryptionZone zone = all.next();
                zones.add(zone.getPath());
              }
              check(zones.containsAll(List.of("/lasting/3x", "/lasting/RS-6-3-1024k")), "the zones are " + zones);
              for (Map.Entry<Path, String> file : files.entrySet()) {
                equal(file.getValue(), EncryptedFileTests.digest(cluster.fs(), file.getKey()), "SHA-256 of " + file.getKey());
                equal(
                    file.getKey().toString().startsWith("/lasting/3x/") ? "lasting@1" : "lasting@0",
                    EncryptedFileTests.info(cluster.fs(), file.getKey()).getEzKeyVersionName(),
                    "version of the key of " + file.getKey());
              }
              Path seen = new Path(own, ".snapshot/s/large");
              equal(files.get(new Path(own, "large")), EncryptedFileTests.digest(cluster.fs(), seen), "SHA-256 in the snapshot");
              admin = new HdfsAdmin(cluster.fs().getUri(), cluster.conf());
              Path second = new Path("/lasting/RS-6-3-1024k");
              admin.reencryptEncryptionZone(second, ReencryptAction.START);
              equal(13L, awaitReencrypted(cluster.fs(), second.toString()).getFilesReencrypted(), "files of the second");
              cluster.restart();
              equal(13L, status(cluster.fs(), second.toString()).getFilesReencrypted(), "files of the second, after a start");
              equal(13L, status(cluster.fs(), own.toString()).getFilesReencrypted(), "files of the first, after a start");
              equal(files.get(new Path(second, "large")), EncryptedFileTests.digest(cluster.fs(), new Path(second, "large")), "SHA-256");
              equal("lasting@1", EncryptedFileTests.info(cluster.fs(), new Path(second, "large")).getEzKeyVersionName(), "version");
            });
  }

  @Override
  public Shell.Result run(String tool, String user, String[] args, byte[] stdin) throws Exception {
    switch (tool) {
      case "key" -> kms.make(args[0]);
      case "roll" -> kms.roll(args[0]);
      case "hold" -> kms.hold(args[0]);
      case "release" -> kms.release();
      case "shut" -> kms.shut();
      case "open" -> kms.open();
      case "underway" ->
          check(status(cluster.fs(), args[0]).getState() != State.Completed, "it has ended");
      case "reencrypted" -> awaitReencrypted(cluster.fs(), args[0]);
      default -> {
        return null;
      }
    }
    return new Shell.Result(0, new byte[0], "");
  }

  private static ZoneReencryptionStatus status(DistributedFileSystem fs, String zone) throws Exception {
    RemoteIterator<ZoneReencryptionStatus> all = fs.listReencryptionStatus();
    while (all.hasNext()) {
      ZoneReencryptionStatus status = all.next();
      if (status.getZoneName().equals(zone)) {
        return status;
      }
    }
    return null;
  }

  /** Waits until nothing of a zone is to be encrypted again. */
  static ZoneReencryptionStatus awaitReencrypted(DistributedFileSystem fs, String zone) throws Exception {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (true) {
      ZoneReencryptionStatus status = status(fs, zone);
      if (status != null && status.getState() == State.Completed) {
        return status;
      }
      check(System.currentTimeMillis() < end, zone + " is still " + status);
      Thread.sleep(20);
    }
  }
}
