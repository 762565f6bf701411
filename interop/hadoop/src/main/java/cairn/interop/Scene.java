package cairn.interop;

import cairn.interop.differential.Seeded;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveInfo;
import org.apache.hadoop.hdfs.protocol.CachePoolInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;
import org.apache.hadoop.io.erasurecode.ECSchema;

/**
 * A tree with something of everything that an image of a namespace can hold, and what a client sees of it.
 *
 * <pre>
 * Scene fill FS ALL           makes it; with ALL yes there are snapshots, what they keep, and cache pools as well, with more
 *                             there is also what was moved from one snapshot to the next
 * Scene change FS             leaves safe mode, and does what every kind of operation can; some files are open then
 * Scene calls FS SEED N       leaves safe mode, and makes N of the calls that the differential test makes of a seed
 * Scene save FS               has the NameNode write its image, in safe mode
 * Scene compile               does nothing: whoever starts it has it compiled
 * Scene facts FS              prints what is there: a line for each path, and one for what else there is
 * Scene diffs FS              prints what is different between each two snapshots of a directory, and now
 * </pre>
 */
public final class Scene {
  private static final int MIB = 1 << 20;
  private final DistributedFileSystem fs;
  private final PrintStream out;

  private Scene(String address, PrintStream out) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set("fs.defaultFS", address);
    // What no DataNode has is not waited for.
    conf.setInt("dfs.client.retry.window.base", 10);
    fs = new DistributedFileSystem();
    fs.initialize(URI.create(address), conf);
    this.out = out;
  }

  public static void main(String[] args) throws Exception {
    if (args[0].equals("compile")) {
      return;
    }
    Scene scene = new Scene(args[1], System.out);
    switch (args[0]) {
      case "fill" -> {
        scene.fill(!args[2].equals("no"));
        if (args[2].equals("more")) {
          scene.moves();
        }
      }
      case "change" -> scene.change();
      case "calls" -> {
        scene.fs.setSafeMode(SafeModeAction.LEAVE);
        Seeded.run(args[1], new HdfsConfiguration(), Long.parseLong(args[2]), Integer.parseInt(args[3]));
      }
      case "save" -> scene.save();
      case "diffs" -> scene.diffs();
      case "facts" -> scene.facts();
      default -> throw new IllegalArgumentException(args[0]);
    }
    System.out.flush();
    // A file stays open: nothing may close it.
    Runtime.getRuntime().halt(0);
  }

  private static byte[] bytes(int length, int seed) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      bytes[i] = (byte) (i * 31 + seed + (i >> 8));
    }
    return bytes;
  }

  private void write(String path, int length, int replication) throws Exception {
    Path file = new Path(path);
    try (FSDataOutputStream stream = fs.create(file, true, 4096, (short) replication, MIB)) {
      stream.write(bytes(length, path.length()));
    }
  }

  private void fill(boolean all) throws Exception {
    for (String name : List.of("plain", "striped/wide", "striped/narrow", "acl", "quota", "cold", "snap/dir", "empty")) {
      fs.mkdirs(new Path("/" + name), new FsPermission((short) 0755));
    }
    write("/plain/empty", 0, 3);
    write("/plain/short", 300, 3);
    write("/plain/several blocks", 2 * MIB + 17, 2);
    write("/plain/\u00fcber-\u6587", 5, 1);
    fs.setPermission(new Path("/plain/short"), new FsPermission((short) 0640));
    fs.setOwner(new Path("/plain/short"), "alice", "analysts");
    fs.setPermission(new Path("/plain"), new FsPermission((short) 01777));
    // Reading it would change an access time that is long ago.
    fs.setTimes(new Path("/plain/short"), 1_000_000_000_123L, -1);
    fs.enableErasureCodingPolicy("RS-6-3-1024k");
    fs.enableErasureCodingPolicy("RS-3-2-1024k");
    fs.enableErasureCodingPolicy("XOR-2-1-1024k");
    fs.setErasureCodingPolicy(new Path("/striped/wide"), "RS-6-3-1024k");
    fs.setErasureCodingPolicy(new Path("/striped/narrow"), "RS-3-2-1024k");
    write("/striped/wide/one cell", 1000, 1);
    write("/striped/wide/stripes", 13 * MIB + 5, 1);
    write("/striped/narrow/groups", 7 * MIB, 1);
    fs.disableErasureCodingPolicy("XOR-2-1-1024k");
    write("/acl/file", 10, 3);
    fs.modifyAclEntries(
        new Path("/acl/file"), AclEntry.parseAclSpec("user:bob:rw-,group:ops:r--", true));
    fs.modifyAclEntries(
        new Path("/acl"), AclEntry.parseAclSpec("default:user:carol:r-x,default:group:ops:rwx,user:bob:rwx", true));
    fs.setXAttr(new Path("/acl/file"), "user.colour", "blue".getBytes(StandardCharsets.UTF_8));
    fs.setXAttr(new Path("/acl/file"), "trusted.seal", new byte[] {0, 1, 2}, EnumSet.of(XAttrSetFlag.CREATE));
    fs.setXAttr(new Path("/acl"), "user.none", new byte[0]);
    fs.setQuota(new Path("/quota"), 1000, 10L * 1024 * MIB);
    fs.setQuotaByStorageType(new Path("/quota"), StorageType.SSD, 5L * 1024 * MIB);
    write("/quota/file", MIB, 3);
    fs.setStoragePolicy(new Path("/cold"), "COLD");
    write("/snap/kept", 4000, 3);
    write("/snap/changed", 5000, 3);
    write("/snap/gone", 6000, 3);
    write("/snap/moved", 7000, 3);
    write("/snap/dir/inner", 8000, 3);
    fs.allowSnapshot(new Path("/empty"));
    if (all) {
      fs.addCachePool(new CachePoolInfo("pool").setLimit(100L * MIB));
      fs.addCacheDirective(
          new CacheDirectiveInfo.Builder().setPath(new Path("/plain/short")).setPool("pool").build());
      snapshots();
    }
    FSDataOutputStream open = fs.create(new Path("/plain/open"), true, 4096, (short) 3, MIB);
    open.write(bytes(MIB + 100, 1));
    open.hflush();
  }

  private void snapshots() throws Exception {
    fs.allowSnapshot(new Path("/snap"));
    fs.createSnapshot(new Path("/snap"), "first");
    fs.delete(new Path("/snap/gone"), false);
    try (FSDataOutputStream more = fs.append(new Path("/snap/changed"))) {
      more.write(bytes(100, 2));
    }
    fs.setPermission(new Path("/snap/dir"), new FsPermission((short) 0700));
    fs.rename(new Path("/snap/moved"), new Path("/plain/moved"));
    fs.createSnapshot(new Path("/snap"), "second");
    write("/snap/new", 9, 3);
    fs.delete(new Path("/snap/dir"), true);
  }

  /** What is somewhere else, or something else, in each of three snapshots. */
  private void moves() throws Exception {
    Path root = new Path("/moves");
    fs.mkdirs(new Path("/moves/dir/deep"));
    write("/moves/one", 3000, 3);
    write("/moves/two", 2 * MIB + 5, 3);
    write("/moves/dir/in", 100, 3);
    write("/moves/dir/deep/down", 200, 2);
    fs.setXAttr(new Path("/moves/one"), "user.age", new byte[] {1});
    fs.allowSnapshot(root);
    fs.createSnapshot(root, "s1");
    fs.rename(new Path("/moves/dir"), new Path("/moves/renamed"));
    fs.setXAttr(new Path("/moves/one"), "user.age", new byte[] {2}, EnumSet.of(XAttrSetFlag.REPLACE));
    write("/moves/late", 50, 3);
    write("/moves/renamed/new", 60, 3);
    fs.createSnapshot(root, "s2");
    fs.rename(new Path("/moves/renamed/deep"), new Path("/snap/deep"));
    fs.rename(new Path("/moves/one"), new Path("/moves/renamed/one"));
    fs.truncate(new Path("/moves/two"), MIB);
    fs.setReplication(new Path("/moves/late"), (short) 2);
    write("/moves/one", 10, 3);
    fs.createSnapshot(root, "s3");
    fs.createSnapshot(new Path("/snap"), "third");
    fs.rename(new Path("/snap/deep/down"), new Path("/plain/down"));
    fs.delete(new Path("/moves/renamed"), true);
    fs.delete(new Path("/moves/late"), false);
    fs.setQuota(root, 100, 1024L * MIB);
  }

  private void save() throws Exception {
    fs.setSafeMode(SafeModeAction.ENTER);
    fs.saveNamespace();
  }

  private void append(String path, int length, CreateFlag... flags) throws Exception {
    EnumSet<CreateFlag> how = EnumSet.of(CreateFlag.APPEND);
    how.addAll(List.of(flags));
    try (FSDataOutputStream more = fs.append(new Path(path), how, 4096, null)) {
      more.write(bytes(length, 3));
    }
  }

  /** Cuts a file off, and waits until DataNodes have done that. */
  private void cut(String path, int length) throws Exception {
    if (!fs.truncate(new Path(path), length)) {
      awaitClosed(path);
    }
  }

  private void awaitClosed(String path) throws Exception {
    while (!fs.isFileClosed(new Path(path))) {
      Thread.sleep(100);
    }
  }

  /** Every kind of operation, on what is there and on what is new. */
  private void change() throws Exception {
    fs.setSafeMode(SafeModeAction.LEAVE);
    changeFiles();
    changeTree();
    changeAttributes();
    changeSnapshots();
    changePolicies();
    changeCache();
    leaveOpen();
  }

  private void changeFiles() throws Exception {
    fs.mkdirs(new Path("/log/files/deep"), new FsPermission((short) 0750));
    write("/log/files/\ud83d\ude00", 11, 2);
    write("/log/files/long", 3 * MIB + 7, 3);
    append("/log/files/long", 2 * MIB);
    append("/log/files/long", 100, CreateFlag.NEW_BLOCK);
    append("/plain/short", 200);
    write("/log/files/full", MIB, 3);
    append("/log/files/full", 5);
    // Over a file that is there.
    write("/plain/several blocks", MIB + 3, 3);
    write("/log/files/cut", 2 * MIB + 500, 3);
    cut("/log/files/cut", 2 * MIB + 10);
    cut("/log/files/cut", MIB);
    write("/log/files/empty", 10, 3);
    cut("/log/files/empty", 0);
    for (String name : List.of("a", "b", "c")) {
      write("/log/files/part-" + name, MIB / 2 + name.charAt(0), 3);
    }
    fs.concat(new Path("/log/files/part-a"), new Path[] {new Path("/log/files/part-b"), new Path("/log/files/part-c")});
    fs.setReplication(new Path("/log/files/part-a"), (short) 2);
    fs.setReplication(new Path("/plain/empty"), (short) 1);
    write("/striped/narrow/more", 2 * MIB + 9, 1);
    append("/striped/narrow/more", 3 * MIB, CreateFlag.NEW_BLOCK);
    write("/striped/wide/one cell", 70_000, 1);
  }

  @SuppressWarnings("deprecation")
  private void changeTree() throws Exception {
    fs.mkdirs(new Path("/log/tree/full/inner"));
    fs.mkdirs(new Path("/log/tree/hollow"));
    write("/log/tree/full/one", 1000, 3);
    write("/log/tree/full/inner/two", 2000, 3);
    write("/log/tree/three", 3000, 3);
    write("/log/tree/four", 4000, 3);
    fs.rename(new Path("/log/tree/three"), new Path("/log/tree/four"), Options.Rename.OVERWRITE);
    fs.rename(new Path("/log/tree/full/inner"), new Path("/log/tree/hollow"), Options.Rename.OVERWRITE);
    fs.rename(new Path("/log/tree/four"), new Path("/log/tree/full"));
    fs.rename(new Path("/log/tree/full"), new Path("/log/tree/renamed"));
    fs.mkdirs(new Path("/log/gone/with/all"));
    write("/log/gone/with/file", 10, 3);
    fs.delete(new Path("/log/gone"), true);
    fs.delete(new Path("/acl/file"), false);
    write("/acl/file", 20, 3);
    fs.mkdirs(new Path("/acl/inherits"));
  }

  private void changeAttributes() throws Exception {
    Path files = new Path("/log/files");
    fs.setPermission(files, new FsPermission((short) 01770));
    fs.setOwner(new Path("/log/files/long"), "bob", null);
    fs.setOwner(new Path("/log/files/cut"), null, "analysts");
    // Reading it would change an access time that is long ago.
    fs.setTimes(new Path("/log/files/full"), 1_100_000_000_000L, 4_000_000_000_000L);
    fs.setTimes(files, 1_300_000_000_000L, -1);
    fs.setAcl(files, AclEntry.parseAclSpec("user::rwx,user:dora:rw-,group::r-x,other::---,default:user:eve:r--", true));
    fs.modifyAclEntries(files, AclEntry.parseAclSpec("group:ops:rwx,default:group:ops:r-x", true));
    fs.removeAclEntries(files, AclEntry.parseAclSpec("user:dora:rw-", true));
    fs.mkdirs(new Path("/log/files/inherits"), new FsPermission((short) 0777));
    write("/log/files/inherits/file", 7, 3);
    fs.setAcl(new Path("/log/tree"), AclEntry.parseAclSpec("user::rwx,user:dora:rw-,group::r-x,other::---", true));
    fs.removeAcl(new Path("/log/tree"));
    fs.removeDefaultAcl(new Path("/acl"));
    Path of = new Path("/log/files/long");
    fs.setXAttr(of, "user.kept", new byte[] {1, 2});
    fs.setXAttr(of, "user.gone", new byte[] {3});
    fs.setXAttr(of, "trusted.empty", new byte[0]);
    fs.setXAttr(of, "user.kept", new byte[] {4}, EnumSet.of(XAttrSetFlag.REPLACE));
    fs.removeXAttr(of, "user.gone");
    fs.removeXAttr(new Path("/acl"), "user.none");
    fs.mkdirs(new Path("/log/quota/below"));
    fs.setQuota(new Path("/log/quota"), 50, 1024L * MIB);
    fs.setQuotaByStorageType(new Path("/log/quota"), StorageType.SSD, 512L * MIB);
    write("/log/quota/below/file", 9000, 3);
    fs.setQuotaByStorageType(new Path("/quota"), StorageType.SSD, -1);
    fs.setQuota(new Path("/quota"), -1, 20L * 1024 * MIB);
    fs.setQuota(new Path("/moves"), -1, -1);
  }

  private void changeSnapshots() throws Exception {
    Path root = new Path("/log/snapshots");
    fs.mkdirs(new Path(root, "dir"));
    write("/log/snapshots/stays", MIB + 1, 3);
    write("/log/snapshots/cut", 2 * MIB + 5, 3);
    write("/log/snapshots/goes", 50, 3);
    write("/log/snapshots/dir/moves", 60, 3);
    fs.allowSnapshot(root);
    fs.createSnapshot(root, "one");
    append("/log/snapshots/stays", 1000);
    cut("/log/snapshots/cut", MIB + 5);
    fs.delete(new Path(root, "goes"), false);
    fs.rename(new Path(root, "dir/moves"), new Path(root, "moved"));
    fs.setPermission(new Path(root, "dir"), new FsPermission((short) 0700));
    fs.createSnapshot(root, "two");
    write("/log/snapshots/new", 70, 3);
    fs.setXAttr(new Path(root, "moved"), "user.late", new byte[] {9});
    fs.rename(new Path(root, "moved"), new Path("/log/tree/out"));
    fs.createSnapshot(root, "three");
    fs.delete(new Path(root, "dir"), true);
    fs.deleteSnapshot(root, "two");
    fs.renameSnapshot(root, "three", "last");
    // Snapshots that the image has.
    write("/snap/later", 80, 3);
    fs.delete(new Path("/snap/new"), false);
    fs.createSnapshot(new Path("/snap"), "fourth");
    fs.deleteSnapshot(new Path("/snap"), "second");
    fs.disallowSnapshot(new Path("/empty"));
  }

  private void changePolicies() throws Exception {
    ECSchema schema = new ECSchema("rs", 4, 2);
    ErasureCodingPolicy own = new ErasureCodingPolicy(schema, 65536);
    fs.addErasureCodingPolicies(new ErasureCodingPolicy[] {own, new ErasureCodingPolicy(schema, 131072)});
    fs.enableErasureCodingPolicy("RS-4-2-64k");
    fs.removeErasureCodingPolicy("RS-4-2-128k");
    fs.enableErasureCodingPolicy("RS-10-4-1024k");
    fs.disableErasureCodingPolicy("RS-10-4-1024k");
    for (String name : List.of("own", "plain", "unset")) {
      fs.mkdirs(new Path("/log/coded/" + name));
    }
    fs.setErasureCodingPolicy(new Path("/log/coded"), "RS-3-2-1024k");
    fs.setErasureCodingPolicy(new Path("/log/coded/own"), "RS-4-2-64k");
    fs.setErasureCodingPolicy(new Path("/log/coded/plain"), "replication");
    fs.setErasureCodingPolicy(new Path("/log/coded/unset"), "RS-6-3-1024k");
    fs.unsetErasureCodingPolicy(new Path("/log/coded/unset"));
    write("/log/coded/own/file", 600_000, 1);
    write("/log/coded/plain/file", 600, 2);
    write("/log/coded/unset/file", MIB, 1);
    fs.setStoragePolicy(new Path("/log/coded/plain"), "ONE_SSD");
    fs.setStoragePolicy(new Path("/log/files/full"), "WARM");
    fs.unsetStoragePolicy(new Path("/cold"));
  }

  private void changeCache() throws Exception {
    fs.addCachePool(new CachePoolInfo("log").setLimit(50L * MIB).setMode(new FsPermission((short) 0700)));
    fs.modifyCachePool(new CachePoolInfo("log").setLimit(60L * MIB).setOwnerName("carol"));
    fs.addCachePool(new CachePoolInfo("gone"));
    fs.addCacheDirective(new CacheDirectiveInfo.Builder().setPath(new Path("/acl")).setPool("gone").build());
    fs.removeCachePool("gone");
    long id = fs.addCacheDirective(
        new CacheDirectiveInfo.Builder().setPath(new Path("/log/files/full")).setPool("log").build());
    fs.modifyCacheDirective(new CacheDirectiveInfo.Builder().setId(id).setReplication((short) 2).build());
    long other = fs.addCacheDirective(
        new CacheDirectiveInfo.Builder().setPath(new Path("/log/tree")).setPool("log").build());
    fs.removeCacheDirective(other);
  }

  /** Files that are open when the NameNode dies, and one that was taken from its writer. */
  private void leaveOpen() throws Exception {
    FSDataOutputStream taken = fs.create(new Path("/log/taken"), true, 4096, (short) 3, MIB);
    taken.write(bytes(5000, 4));
    taken.hflush();
    fs.recoverLease(new Path("/log/taken"));
    awaitClosed("/log/taken");
    FSDataOutputStream none = fs.create(new Path("/log/open-empty"), true, 4096, (short) 3, MIB);
    none.flush();
    FSDataOutputStream lost = fs.create(new Path("/log/open-lost"), true, 4096, (short) 3, MIB);
    lost.write(bytes(10, 4));
    lost.hflush();
    fs.delete(new Path("/log/open-lost"), false);
    FSDataOutputStream open = fs.create(new Path("/log/open"), true, 4096, (short) 3, MIB);
    open.write(bytes(2 * MIB + 300, 5));
    open.hsync();
    fs.rename(new Path("/log/open"), new Path("/log/open-renamed"));
    FSDataOutputStream more = fs.append(new Path("/log/taken"));
    more.write(bytes(50, 6));
    more.hflush();
  }

  private void diffs() throws Exception {
    SnapshottableDirectoryStatus[] all = fs.getSnapshottableDirListing();
    for (SnapshottableDirectoryStatus dir : all == null ? new SnapshottableDirectoryStatus[0] : all) {
      List<String> names = new ArrayList<>();
      if (dir.getSnapshotNumber() > 0) {
        for (FileStatus snapshot : fs.listStatus(new Path(dir.getFullPath(), ".snapshot"))) {
          names.add(snapshot.getPath().getName());
        }
      }
      names.add("");
      for (int from = 0; from < names.size(); from++) {
        for (int to = from + 1; to < names.size(); to++) {
          diff(dir.getFullPath(), names.get(from), names.get(to));
        }
      }
    }
  }

  private void diff(Path dir, String from, String to) throws Exception {
    List<String> lines = new ArrayList<>();
    for (var entry : fs.getSnapshotDiffReport(dir, from, to).getDiffList()) {
      lines.add(entry.toString());
    }
    Collections.sort(lines);
    for (String line : lines) {
      out.println("diff " + dir.toUri().getPath() + " " + from + ".." + to + " " + line.replace("\t", " "));
    }
  }

  private void facts() throws Exception {
    walk(new Path("/"));
    List<String> policies = new ArrayList<>();
    for (var info : fs.getAllErasureCodingPolicies()) {
      // Cairn has policies of its own beside Hadoop's.
      if (info.getPolicy().getId() <= 5) {
        policies.add(info.getPolicy().getName() + "=" + info.getState());
      }
    }
    Collections.sort(policies);
    out.println("policies " + policies);
    SnapshottableDirectoryStatus[] snapshottable = fs.getSnapshottableDirListing();
    if (snapshottable != null) {
      for (SnapshottableDirectoryStatus dir : snapshottable) {
        out.println("snapshottable " + dir.getFullPath().toUri().getPath() + " " + dir.getSnapshotNumber());
        if (dir.getSnapshotNumber() > 0) {
          for (FileStatus snapshot : fs.listStatus(new Path(dir.getFullPath(), ".snapshot"))) {
            walk(snapshot.getPath());
          }
        }
      }
    }
    var pools = fs.listCachePools();
    while (pools.hasNext()) {
      CachePoolInfo pool = pools.next().getInfo();
      out.println("pool " + pool.getPoolName() + " " + pool.getOwnerName() + " " + pool.getMode() + " " + pool.getLimit());
    }
    var directives = fs.listCacheDirectives(null);
    while (directives.hasNext()) {
      CacheDirectiveInfo info = directives.next().getInfo();
      out.println("directive " + info.getId() + " " + info.getPath().toUri().getPath() + " " + info.getReplication());
    }
  }

  private void walk(Path path) throws Exception {
    tell(path);
    if (fs.getFileStatus(path).isDirectory()) {
      FileStatus[] children = fs.listStatus(path);
      Arrays.sort(children);
      for (FileStatus child : children) {
        walk(child.getPath());
      }
    }
  }

  private void tell(Path path) throws Exception {
    String name = path.toUri().getPath();
    DFSClient client = fs.getClient();
    HdfsFileStatus status = client.getFileInfo(name);
    StringBuilder line = new StringBuilder("path ").append(quoted(name));
    ErasureCodingPolicy policy = status.getErasureCodingPolicy();
    line.append(" id=").append(status.getFileId());
    line.append(status.isDirectory() ? " dir" : " file");
    line.append(" owner=").append(status.getOwner()).append(':').append(status.getGroup());
    line.append(" mode=").append(Integer.toOctalString(status.getPermission().toShort()));
    line.append(" modified=").append(status.getModificationTime());
    line.append(" accessed=").append(status.getAccessTime());
    line.append(" storage=").append(status.getStoragePolicy());
    line.append(" ec=").append(policy == null ? "-" : policy.getName());
    if (!status.isDirectory()) {
      line.append(" length=").append(status.getLen());
      line.append(" replication=").append(status.getReplication());
      line.append(" block=").append(status.getBlockSize());
      boolean isOpen = client.getLocatedBlocks(name, 0).isUnderConstruction();
      List<String> blocks = new ArrayList<>();
      for (LocatedBlock block : client.getLocatedBlocks(name, 0, Long.MAX_VALUE).getLocatedBlocks()) {
        var id = block.getBlock();
        blocks.add(id.getBlockId() + "_" + id.getGenerationStamp() + ":" + id.getNumBytes());
      }
      line.append(" blocks=").append(blocks);
      line.append(isOpen ? " open" : " md5=" + digest(path));
    } else if (!name.contains("/.snapshot")) {
      QuotaUsage quota = fs.getContentSummary(path);
      line.append(" quota=").append(quota.getQuota()).append('/').append(quota.getSpaceQuota());
      line.append('/').append(quota.getTypeQuota(StorageType.SSD));
    }
    AclStatus acl = fs.getAclStatus(path);
    if (!acl.getEntries().isEmpty()) {
      line.append(" acl=").append(acl.getEntries());
    }
    Map<String, String> attributes = new TreeMap<>();
    for (Map.Entry<String, byte[]> attribute : fs.getXAttrs(path).entrySet()) {
      attributes.put(attribute.getKey(), HexFormat.of().formatHex(attribute.getValue()));
    }
    if (!attributes.isEmpty()) {
      line.append(" xattrs=").append(attributes);
    }
    out.println(line);
  }

  private static String quoted(String name) {
    return name.replace(" ", "%20");
  }

  private String digest(Path path) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("MD5");
    byte[] buffer = new byte[1 << 16];
    try (InputStream in = fs.open(path)) {
      for (int length = in.read(buffer); length >= 0; length = in.read(buffer)) {
        digest.update(buffer, 0, length);
      }
    } catch (IOException e) {
      System.err.println(path + ": " + e);
      return "unread";
    }
    return HexFormat.of().formatHex(digest.digest());
  }
}
