package cairn.interop.storm;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** What must be true after a storm, when all is healed and there was time. */
final class Check {
  /** More than a NameNode waits for DataNodes that it has not heard of since its start. */
  private static final int OPEN_SECONDS = 200;

  private interface Condition {
    /** What is not as it should be yet; null when all is. */
    String lacks() throws Exception;
  }

  private final Storm storm;
  private final Cluster cluster;
  private final Faults faults;
  private final Client cairn;
  private final DistributedFileSystem fs;
  private final Client hadoop;
  private long end;
  private final long began = System.nanoTime();

  Check(Storm storm, Cluster cluster, Faults faults, Client cairn) throws IOException {
    this.storm = storm;
    this.cluster = cluster;
    this.faults = faults;
    this.cairn = cairn;
    fs = cluster.connect();
    hadoop = new HadoopClient(fs);
  }

  /** Waits until {@code end}, by {@link System#nanoTime}, for what takes time. */
  void run(long end) throws Exception {
    this.end = end;
    await("all serve", this::service);
    // What a balancer that was killed had open.
    fs.delete(new Path("/system"), true);
    await("all files are closed", this::closed);
    Storm.say("all is closed; reads every replica and unit");
    await("what is bad is found and mended", () -> scrub(true));
    await("fsck finds nothing", this::fsck);
    compare("Hadoop", hadoop);
    compare("Cairn", cairn);
    summaries();
    await("the disks have what they should and nothing else", this::disks);
    await("every replica and unit is good", () -> scrub(false));
    for (Cluster.NameNode n : cluster.nameNodes) {
      n.kill();
    }
    for (Cluster.NameNode n : cluster.nameNodes) {
      n.start();
    }
    await("all serve after one more start of the NameNode", this::service);
    names();
    await("fsck finds nothing after it", this::fsck);
  }

  private void await(String what, Condition condition) throws Exception {
    String lacks = "it was not looked at";
    long began = System.nanoTime();
    long limit = Math.max(end, began + TimeUnit.SECONDS.toNanos(60));
    long told = began;
    while (System.nanoTime() < limit) {
      faults.isHealed();
      try {
        lacks = condition.lacks();
        if (lacks == null) {
          Storm.say("%s (after %.1f s)".formatted(what, (System.nanoTime() - began) / 1e9));
          return;
        }
      } catch (IOException e) {
        lacks = e.toString();
      }
      if (System.nanoTime() - told > TimeUnit.SECONDS.toNanos(30)) {
        told = System.nanoTime();
        Storm.say("waits until " + what + ": " + lacks);
      }
      Thread.sleep(500);
    }
    storm.violated("it is not so that " + what + ": " + lacks);
    throw new IOException("there is no use in going on");
  }

  private String service() throws IOException {
    int live = fs.getDataNodeStats(DatanodeReportType.LIVE).length;
    if (live != Cluster.NODES) {
      return live + " DataNodes";
    }
    return fs.setSafeMode(SafeModeAction.GET) ? "safe mode" : null;
  }

  private String closed() throws Exception {
    boolean isLate = System.nanoTime() - began > TimeUnit.SECONDS.toNanos(OPEN_SECONDS);
    for (Worker w : storm.workers) {
      for (StoredFile f : w.files) {
        if (!f.state().isSettled() && !w.settle(f, 0)) {
          if (!isLate || !w.isStriped()) {
            return f.state().path() + " is open";
          }
          giveUp(w, f.state());
          w.files.remove(f);
        }
      }
    }
    return null;
  }

  /**
   * An erasure coded file can stay open: where too few units of its last group are left to tell what of it was
   * acknowledged, nobody decides that nothing was. What is before that group must be there, and an operator deletes the file.
   */
  private void giveUp(Worker w, StoredFile.State s) throws IOException {
    Storm.say("STAYS OPEN: " + s.path() + ", of which " + s.acknowledged() + " bytes are acknowledged");
    byte[] wanted = Arrays.copyOf(s.content(), s.acknowledged());
    try (FSDataInputStream in = fs.open(new Path(s.path()))) {
      byte[] read = in.readNBytes(wanted.length);
      if (!Arrays.equals(read, wanted)) {
        storm.violated(s.path() + ", open: " + Reader.difference(read, wanted));
      }
    }
    fs.delete(new Path(s.path()), false);
  }

  private String scrub(boolean repairs) throws Exception {
    for (String folder : storm.folders()) {
      List<String> paths = new ArrayList<>(List.of(folder));
      for (HdfsFileStatus s : Known.entries(fs.getClient(), folder + "/.snapshot", false)) {
        paths.add(folder + "/.snapshot/" + s.getLocalName());
      }
      for (String path : paths) {
        String said =
            repairs
                ? cluster.output(400, "scrub", "--repair", "--wait", "60", path)
                : cluster.output(400, "scrub", path);
        if (said == null || !said.contains("exit status 0")) {
          return path + ": " + said;
        }
      }
    }
    return null;
  }

  private String fsck() throws Exception {
    String said = cluster.output(60, "fsck", "/");
    if (said == null || !said.contains("is HEALTHY")) {
      return "fsck: " + said;
    }
    for (String line : said.split("\n")) {
      String[] pair = line.trim().split(":\\s*");
      boolean counts =
          line.matches("\\s*(Under-|Over-|Mis-|Missing|Corrupt|Unsatisfactory|Blocks queued|Decommission).*");
      if (counts && pair.length > 1 && !pair[1].startsWith("0")) {
        return "fsck: " + line.trim() + "\n" + said;
      }
    }
    long pending = fs.getClient().getPendingDeletionBlocksCount();
    return pending > 0 ? pending + " deletions are pending" : null;
  }

  private void compare(String who, Client client) throws IOException {
    int files = 0;
    for (Worker w : storm.workers) {
      for (StoredFile f : w.files) {
        compare(who, client, f.state().path(), f.state().content());
        files++;
      }
      for (var snapshot : w.snapshots.entrySet()) {
        for (var file : snapshot.getValue().entrySet()) {
          String path = w.folder + "/.snapshot/" + snapshot.getKey() + "/" + file.getKey();
          compare(who, client, path, file.getValue());
          files++;
        }
      }
    }
    Storm.say(files + " files are as they should be for " + who + "'s client");
  }

  private void compare(String who, Client client, String path, byte[] wanted) {
    try {
      String wrong = Reader.difference(client.read(path), wanted);
      if (wrong != null) {
        storm.violated(path + ", read by " + who + "'s client: " + wrong);
      }
    } catch (IOException e) {
      storm.violated(path + ", read by " + who + "'s client: " + e);
    }
  }

  private void names() throws IOException {
    for (Worker w : storm.workers) {
      Map<String, Long> wanted = new HashMap<>();
      w.files.forEach(f -> wanted.put(f.state().path(), (long) f.state().content().length));
      Map<String, Long> seen = new HashMap<>();
      for (HdfsFileStatus s : Known.entries(fs.getClient(), w.folder, false)) {
        seen.put(w.folder + "/" + s.getLocalName(), s.getLen());
      }
      if (!wanted.equals(seen)) {
        Set<Object> differ = new HashSet<>(wanted.entrySet());
        differ.removeAll(seen.entrySet());
        Set<Object> more = new HashSet<>(seen.entrySet());
        more.removeAll(wanted.entrySet());
        storm.violated(w.folder + " lacks " + differ + " and has " + more);
      }
    }
  }

  /** Names and lengths, and what summaries count. */
  private void summaries() throws IOException {
    names();
    for (Worker w : storm.workers) {
      long bytes = w.files.stream().mapToLong(f -> f.state().content().length).sum();
      ContentSummary s = fs.getContentSummary(new Path(w.folder));
      long files = s.getFileCount() - s.getSnapshotFileCount();
      long length = s.getLength() - s.getSnapshotLength();
      if (files != w.files.size() || length != bytes) {
        storm.violated(
            "%s is counted as %d files with %d bytes, and has %d with %d"
                .formatted(w.folder, files, length, w.files.size(), bytes));
      }
    }
  }

  /** The files on all disks are those of the blocks that there are, one of each that a block should have. */
  private String disks() throws IOException {
    Known known = new Known(cluster, fs, storm.folders());
    Disks disks = new Disks(cluster);
    Set<String> wrong = new TreeSet<>();
    long bytes = 0;
    for (Known.Block b : known.blocks.values()) {
      int found = 0;
      for (int unit = 0; unit < b.units(); unit++) {
        List<Disks.Replica> of = disks.replicas.getOrDefault(b.id() + unit, List.of());
        int wanted = b.policy() != null ? b.has(unit) ? 1 : 0 : b.wanted();
        int most = b.policy() != null ? wanted : known.copies.get(b.file());
        if (of.size() < wanted || of.size() > most) {
          wrong.add(
              "blk_%d of %s: %d in the place of %d: %s"
                  .formatted(b.id() + unit, b.path(), of.size(), wanted, of.stream().map(Disks.Replica::part).toList()));
        }
        for (Disks.Replica r : of) {
          found++;
          bytes += r.block.length();
          if (!b.isWhole(r) || r.block.length() != b.length(unit)) {
            wrong.add(r.block + " of " + b.path() + " is not as it should be");
          }
          if (!b.parts().contains(r.part())) {
            wrong.add(r.block + " of " + b.path() + " is not known to the NameNode");
          }
        }
      }
      if (found != b.parts().size()) {
        wrong.add("blk_" + b.id() + " of " + b.path() + ": the NameNode knows " + b.parts());
      }
    }
    for (List<Disks.Replica> of : disks.replicas.values()) {
      for (Disks.Replica r : of) {
        if (!known.blocks.containsKey(r.part().group())) {
          wrong.add(r.block + " is of no file");
        }
      }
    }
    long space = 0;
    for (String folder : storm.folders()) {
      ContentSummary s = fs.getContentSummary(new Path(folder));
      space += s.getSpaceConsumed();
    }
    if (wrong.isEmpty() && space != bytes) {
      wrong.add(space + " bytes are counted, and there are " + bytes);
    }
    return wrong.isEmpty() ? null : wrong.size() + " things: " + String.join("; ", wrong);
  }
}
