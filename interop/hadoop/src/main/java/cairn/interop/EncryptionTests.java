package cairn.interop;

import static cairn.interop.Runner.check;

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ZoneReencryptionStatus;

/** Encryption zones, with Hadoop's key server. */
final class EncryptionTests implements Transcript.Tools {
  private static final long PATIENCE_MS = 30_000;

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
      try (ClusterProcess cluster =
          new ClusterProcess(x.target(), new File(x.work(), "encryption"), 9, 3, keys)) {
        EncryptionTests t = new EncryptionTests(x, kms, cluster);
        t.commands();
      }
    }
  }

  private void commands() throws Exception {
    Map<String, String> words =
        Map.of("USER", System.getProperty("user.name"), "F", new File(x.work(), "small-file").getPath());
    Transcript t = new Transcript(new File(x.home(), "hadoop/cases/encryption/crypto.txt"));
    for (Transcript.Case c : t.cases) {
      File local = new File(x.work(), "local/encryption-crypto-" + c.name.replace(' ', '-'));
      x.runner()
          .test(
              "encryption/crypto/" + c.name,
              () -> Transcript.run(c, x.target(), cluster.conf(), local, x.record(), words, this));
    }
    if (x.record()) {
      t.save();
    }
  }

  @Override
  public Shell.Result run(String tool, String user, String[] args) throws Exception {
    switch (tool) {
      case "key" -> kms.make(args[0]);
      case "roll" -> kms.roll(args[0]);
      case "hold" -> kms.hold(args[0]);
      case "release" -> kms.release();
      case "shut" -> kms.shut();
      case "open" -> kms.open();
      case "underway" ->
          check(status(cluster.fs(), args[0]).getState() != ZoneReencryptionStatus.State.Completed, "it has ended");
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
      if (status != null && status.getState() == ZoneReencryptionStatus.State.Completed) {
        return status;
      }
      check(System.currentTimeMillis() < end, zone + " is still " + status);
      Thread.sleep(20);
    }
  }
}
