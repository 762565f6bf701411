package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/**
 * Files in a directory with a contiguous policy: stock clients write and read plain blocks, servers put parity over
 * them, drop what is too much, serve what is lost, and mend it.
 */
final class GroupTests {
  /** Has blocks of any length put into groups as soon as their file is closed. */
  static final Map<String, String> AT_ONCE =
      Map.of(
          "cairn.ec.contiguous.quiet-time", "0",
          "cairn.ec.contiguous.short-quiet-time", "0",
          "cairn.ec.contiguous.min-length", "1");

  private static final String POLICY = "RS-3-2-contiguous";
  private static final String STRIPED = "RS-3-2-1024k";
  /** Bytes of an internal block. */
  private static final long STRIPED_BLOCK = 2 << 20;
  private static final int UNITS = 5;
  private static final int LOSSES = 2;
  private static final long BLOCK = 1 << 20;
  /** Two groups, one of which ends short. */
  private static final long LENGTH = 5 * BLOCK + 777_777;

  private final Main.Context x;
  private final ClusterProcess cluster;
  private final DistributedFileSystem fs;
  private final Path folder = new Path("/contiguous");
  private final Path file = new Path(folder, "f");
  private final Set<Integer> gone = new TreeSet<>();
  private String digest;

  private GroupTests(Main.Context x, ClusterProcess cluster) throws IOException {
    this.x = x;
    this.cluster = cluster;
    fs = cluster.fs();
  }

  static void run(Main.Context x) throws Exception {
    if (x.target().isHadoop() || !x.runner().wantsGroup("groups/")) {
      return;
    }
    x.runner()
        .test(
            "groups/a stock client's file is grouped, read through losses, mended and deleted",
            () -> {
              int nodes = UNITS + LOSSES + 2;
              try (ClusterProcess cluster = start(x, "groups", nodes)) {
                new GroupTests(x, cluster).tell();
              }
            });
    x.runner()
        .test(
            "groups/a replicated file is converted under a reader, goes on, and is converted back",
            () -> {
              try (ClusterProcess cluster = start(x, "converted", UNITS + 1)) {
                new GroupTests(x, cluster).convert();
              }
            });
    x.runner()
        .test(
            "groups/a striped file is converted under a reader, and appended to",
            () -> {
              try (ClusterProcess cluster = start(x, "restriped", UNITS + 1)) {
                new GroupTests(x, cluster).restripe();
              }
            });
  }

  /** A striped file gets plain blocks while it is read, and takes what striped files refuse from then on. */
  private void restripe() throws Exception {
    Path striped = new Path("/striped/f");
    fs.mkdirs(striped.getParent());
    fs.enableErasureCodingPolicy(STRIPED);
    fs.enableErasureCodingPolicy(POLICY);
    fs.setErasureCodingPolicy(striped.getParent(), STRIPED);
    long length = 3 * STRIPED_BLOCK + 1_234_567;
    byte[] all = new byte[(int) length];
    check(new Data.Source(2, length).readNBytes(all, 0, all.length) == all.length, "bytes");
    FileTests.store(fs, striped, 2, length, STRIPED_BLOCK);
    fs.setAcl(striped, AclEntry.parseAclSpec("user::rw-,user:ann:r--,group::r--,mask::r--,other::---", true));
    fs.setXAttr(striped, "user.of", new byte[] {1});
    AclStatus acl = fs.getAclStatus(striped);
    check(acl.getEntries().size() > 1, "an access control list");
    FileStatus status = fs.getFileStatus(striped);
    List<LocatedBlock> groups = fs.getClient().getLocatedBlocks(striped.toString(), 0, length).getLocatedBlocks();
    Configuration composite = new Configuration(fs.getConf());
    composite.set("dfs.checksum.combine.mode", "COMPOSITE_CRC");
    try (DistributedFileSystem summing = (DistributedFileSystem) FileSystem.newInstance(fs.getUri(), composite);
        FSDataInputStream in = fs.open(striped)) {
      FileChecksum before = summing.getFileChecksum(striped);
      byte[] read = new byte[all.length];
      in.readFully(read, 0, 1_000_000);
      cairn("ec", "convert", "--policy", POLICY, "--leave-striped", "/striped");
      equal(STRIPED, fs.getErasureCodingPolicy(striped).getName(), "policy of a file that is left");
      String told = cairn("ec", "convert", "--policy", POLICY, "/striped");
      check(told.contains("1 striped files") && told.contains("written anew"), told);
      in.readFully(read, 1_000_000, read.length - 1_000_000);
      check(Arrays.equals(all, read), "a reader that was open reads the same bytes");
      equal(before, summing.getFileChecksum(striped), "composite checksum");
    }
    FileStatus now = fs.getFileStatus(striped);
    equal(status.getModificationTime(), now.getModificationTime(), "time");
    equal(status.getPermission(), now.getPermission(), "permission");
    equal(status.getOwner() + status.getGroup(), now.getOwner() + now.getGroup(), "owner and group");
    equal(acl, fs.getAclStatus(striped), "access control list");
    equal(1, fs.getXAttr(striped, "user.of").length, "attribute");
    equal(((HdfsFileStatus) status).getFileId(), ((HdfsFileStatus) now).getFileId(), "number");
    equal(POLICY, fs.getErasureCodingPolicy(striped).getName(), "policy of the file");
    List<LocatedBlock> plain = fs.getClient().getLocatedBlocks(striped.toString(), 0, length).getLocatedBlocks();
    check(groups.get(0).isStriped() && plain.stream().noneMatch(LocatedBlock::isStriped), "plain blocks");
    Runner.await(
        120,
        () -> "grouped: " + parities() + " parities",
        () -> parities() >= LOSSES);
    try (OutputStream out = fs.append(striped)) {
      out.write(all, 0, 1000);
      ((FSDataOutputStream) out).hsync();
    }
    byte[] longer = Arrays.copyOf(all, all.length + 1000);
    System.arraycopy(all, 0, longer, all.length, 1000);
    try (FSDataInputStream in = fs.open(striped)) {
      byte[] read = new byte[longer.length];
      in.readFully(read);
      check(Arrays.equals(longer, read) && in.read() < 0, "bytes after an append");
    }
  }

  private static ClusterProcess start(Main.Context x, String name, int nodes) throws Exception {
    Map<String, String> keys = new HashMap<>(x.keys());
    // A DataNode is dead after 13 s of silence.
    keys.put("dfs.namenode.heartbeat.recheck-interval", "1500");
    keys.putAll(AT_ONCE);
    return new ClusterProcess(x.target(), new File(x.work(), name), nodes, 1, keys);
  }

  /**
   * A reader that found its blocks when they were copies reads on while they are grouped; append and truncate go on in
   * what is grouped; all is copies again in the end.
   */
  private void convert() throws Exception {
    fs.mkdirs(folder);
    fs.enableErasureCodingPolicy(POLICY);
    digest = FileTests.store(fs, file, 1, LENGTH, BLOCK);
    FileChecksum before = fs.getFileChecksum(file);
    FileStatus status = fs.getFileStatus(file);
    List<Long> ids = ids();
    check(cairn("ec", "convert", "--policy", POLICY, "--dry-run", folder.toString()).contains("can be"), "dry run");
    equal(ids.size() * 3L, replicas(), "replicas after a dry run");

    byte[] all = new byte[(int) LENGTH];
    check(new Data.Source(1, LENGTH).readNBytes(all, 0, all.length) == all.length, "bytes");
    try (FSDataInputStream in = fs.open(file)) {
      int half = (int) BLOCK / 2;
      byte[] read = new byte[all.length];
      in.readFully(read, 0, half);
      String told = cairn("ec", "convert", "--policy", POLICY, folder.toString());
      check(told.contains("converted to " + POLICY + ": 1 files"), told);
      awaitGrouped("converted");
      in.readFully(read, half, all.length - half);
      check(Arrays.equals(all, read), "a reader that was open reads the same bytes");
    }
    equal(POLICY, fs.getErasureCodingPolicy(file).getName(), "policy of the file");
    equal(POLICY, fs.getErasureCodingPolicy(folder).getName(), "policy of its folder");
    equal(ids, ids(), "blocks");
    FileStatus now = fs.getFileStatus(file);
    equal(status.getModificationTime(), now.getModificationTime(), "time");
    equal(status.getReplication(), now.getReplication(), "replication");
    equal(before, fs.getFileChecksum(file), "checksum of the file when it is grouped");
    read("when it is grouped");
    check(cairn("ec", "status").contains("In groups"), "status");

    // What is grouped goes on in a block of its own, and is cut off by a copy.
    try (OutputStream out = fs.append(file)) {
      out.write(all, 0, 12_345);
    }
    equal(LENGTH + 12_345, fs.getFileStatus(file).getLen(), "length after an append");
    equal(ids, ids().subList(0, ids.size()), "blocks after an append");
    long cut = 4 * BLOCK + 1000;
    if (!fs.truncate(file, cut)) {
      Runner.await("the file is cut off", () -> fs.isFileClosed(file));
    }
    equal(cut, fs.getFileStatus(file).getLen(), "length after a truncate");
    byte[] left = new byte[(int) cut];
    try (FSDataInputStream in = fs.open(file)) {
      in.readFully(left);
    }
    check(Arrays.equals(Arrays.copyOf(all, left.length), left), "bytes after a truncate");

    cairn("ec", "convert", "--replicate", "--wait", folder.toString());
    check(fs.getErasureCodingPolicy(file) == null, "a file that is converted back has no policy");
    Runner.await(
        120,
        () -> "copies again: " + blocks() + ", " + parities() + " parities",
        () -> blocks().stream().allMatch(b -> b.getLocations().length == 3) && parities() == 0);
    try (FSDataInputStream in = fs.open(file)) {
      in.readFully(left);
    }
    check(Arrays.equals(Arrays.copyOf(all, left.length), left), "bytes at the end");
  }

  private List<Long> ids() throws IOException {
    return blocks().stream().map(b -> b.getBlock().getBlockId()).toList();
  }

  /** What the command says, which must succeed. */
  private String cairn(String... words) throws Exception {
    List<String> command = new ArrayList<>(List.of(x.cairn().getPath(), "--fs", cluster.uri()));
    command.addAll(List.of(words));
    Process p = new ProcessBuilder(command).redirectErrorStream(true).start();
    p.getOutputStream().close();
    String out = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    equal(0, p.waitFor(), "exit code of " + String.join(" ", words) + ", after " + out);
    return out;
  }

  private void tell() throws Exception {
    fs.mkdirs(folder);
    fs.enableErasureCodingPolicy(POLICY);
    fs.setErasureCodingPolicy(folder, POLICY);
    digest = FileTests.store(fs, file, 1, LENGTH, BLOCK);
    equal(POLICY, fs.getErasureCodingPolicy(file).getName(), "policy");
    check(blocks().stream().noneMatch(LocatedBlock::isStriped), "plain blocks");
    read("when it was written");
    FileChecksum before = fs.getFileChecksum(file);

    awaitGrouped("grouped");
    read("when it is grouped");
    equal(before, fs.getFileChecksum(file), "checksum of the file when it is grouped");
    // Plain blocks have their length once, and parity the length of the longest member.
    long stored = stored();
    check(stored < LENGTH * 18 / 10, stored + " bytes on disks for " + LENGTH);

    lose(holders().get(0));
    read("when a member is lost");
    equal(before, fs.getFileChecksum(file), "checksum of the file when a member is lost");
    awaitGrouped("mended");
    read("when it is mended");

    lose(holders().get(1), holders().get(2));
    read("when two members are lost");
    awaitGrouped("mended again");
    read("when it is mended again");
    equal(before, fs.getFileChecksum(file), "checksum of the file when it is mended again");

    check(fs.delete(file, false), "delete");
    Runner.await(120, () -> stored() + " bytes are left", () -> stored() == 0);
  }

  private List<LocatedBlock> blocks() throws IOException {
    return fs.getClient()
        .getLocatedBlocks(file.toUri().getPath(), 0, Long.MAX_VALUE)
        .getLocatedBlocks();
  }

  /** The DataNode that has each block, where there is one, by its index. */
  private List<Integer> holders() throws IOException {
    Map<String, Integer> indices = cluster.indexByUuid();
    List<Integer> holders = new ArrayList<>();
    for (LocatedBlock b : blocks()) {
      DatanodeInfo[] nodes = b.getLocations();
      holders.add(nodes.length == 0 ? null : indices.get(nodes[0].getDatanodeUuid()));
    }
    return holders;
  }

  /** Each block has one replica, and so much parity is on disks as belongs to it. */
  private void awaitGrouped(String what) throws Exception {
    Runner.await(
        120, () -> what + ": " + blocks() + ", " + parities() + " parities", this::isGrouped);
  }

  private boolean isGrouped() throws Exception {
    for (LocatedBlock b : blocks()) {
      int replicas = replicas(b.getBlock().getBlockId());
      if (b.getLocations().length != 1 || replicas != 1) {
        return false;
      }
    }
    return parities() == 2 * LOSSES;
  }

  /** Stops DataNodes and waits until the NameNode takes them to be dead. */
  private void lose(Integer... nodes) throws Exception {
    Set<Integer> lost = new TreeSet<>(List.of(nodes));
    for (int node : lost) {
      cluster.killDataNode(node);
      gone.add(node);
    }
    // Nobody but the reader has noticed; it waits between its tries as long as Hadoop's client does by default.
    Configuration patient = new Configuration(fs.getConf());
    patient.unset("dfs.client.retry.window.base");
    try (FileSystem reader = FileSystem.newInstance(fs.getUri(), patient);
        FSDataInputStream in = reader.open(file)) {
      equal(digest, Data.digest(in), "SHA-256 when DataNodes " + lost + " have just ended");
    }
    Runner.await(
        "DataNodes are dead",
        () -> fs.getDataNodeStats(DatanodeReportType.DEAD).length == gone.size());
  }

  private void read(String when) throws Exception {
    try (FSDataInputStream in = fs.open(file)) {
      equal(digest, Data.digest(in), "SHA-256 " + when);
    }
    Random random = new Random(when.hashCode());
    byte[] all = new byte[(int) LENGTH];
    check(new Data.Source(1, LENGTH).readNBytes(all, 0, all.length) == all.length, "bytes");
    try (FSDataInputStream in = fs.open(file)) {
      for (int i = 0; i < 20; i++) {
        int at = random.nextInt(all.length - 1);
        byte[] piece = new byte[1 + random.nextInt(Math.min(100_000, all.length - at))];
        in.readFully(at, piece);
        for (int j = 0; j < piece.length; j++) {
          check(piece[j] == all[at + j], "byte " + (at + j) + " " + when);
        }
      }
    }
  }

  /** Block files of DataNodes that run. */
  private List<File> files() throws IOException {
    List<File> found = new ArrayList<>();
    for (JsonNode node : cluster.describe().path("datanodes")) {
      if (gone.contains(node.path("index").asInt())) {
        continue;
      }
      try (Stream<java.nio.file.Path> paths =
          Files.walk(new File(node.path("data").asText()).toPath())) {
        paths
            .filter(path -> path.getFileName().toString().matches("blk_[0-9]+"))
            .forEach(path -> found.add(path.toFile()));
      } catch (java.io.UncheckedIOException e) {
        // A file or folder went away meanwhile: the next look shows what is left.
        continue;
      }
    }
    return found;
  }

  private long stored() throws IOException {
    return files().stream().mapToLong(File::length).sum();
  }

  private int replicas(long id) throws IOException {
    return (int) files().stream().filter(f -> f.getName().equals("blk_" + id)).count();
  }

  /** Replicas of all blocks. */
  private long replicas() throws IOException {
    return files().size() - parities();
  }

  private long parities() throws IOException {
    return files().stream().filter(f -> Long.parseLong(f.getName().substring(4)) >>> 61 == 1).count();
  }
}
