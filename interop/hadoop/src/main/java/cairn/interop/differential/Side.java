package cairn.interop.differential;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToLongFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSInotifyEventInputStream;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.NameNodeProxiesClient;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.SnapshotStatus;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.UserGroupInformation;

/** One of the two file systems that get the same calls. */
final class Side implements AutoCloseable {
  private static final long NO_INODE = 1L << 40;

  private final String superuser = UserGroupInformation.getCurrentUser().getShortUserName();
  private final Map<String, ClientProtocol> names = new HashMap<>();
  private final Map<String, DistributedFileSystem> files = new HashMap<>();
  private Map<String, Long> ids = new HashMap<>();
  private final Set<Long> limited = new LinkedHashSet<>();
  private final boolean reserved;
  private final String pool;
  private final Call.Act restart;
  private final Audit audit;
  private String root = "/";
  private boolean isSpaceTold = true;
  private String policy;
  private DFSInotifyEventInputStream watched;

  /**
   * Connects as the superuser and as each of {@code users}, to what writes {@code audit}; {@code reserved}: calls may reach the root; {@code restart}
   * is what a call to restart does.
   */
  Side(URI uri, Configuration conf, Audit audit, List<String> users, boolean reserved, Call.Act restart)
      throws Exception {
    this.audit = audit;
    this.reserved = reserved;
    this.restart = restart;
    open(uri, conf, "superuser", UserGroupInformation.getCurrentUser());
    for (String user : users) {
      open(uri, conf, user, UserGroupInformation.createRemoteUser(user));
    }
    Path probe = new Path("/probe");
    try (OutputStream out = files.get("superuser").create(probe)) {
      out.write(1);
    }
    pool = superuser().getBlockLocations("/probe", 0, 1).get(0).getBlock().getBlockPoolId();
    files.get("superuser").delete(probe, false);
  }

  private void open(URI uri, Configuration conf, String user, UserGroupInformation ugi) throws Exception {
    names.put(
        user,
        NameNodeProxiesClient.createNonHAProxyWithClientProtocol(
            DFSUtilClient.getNNAddress(uri), conf, ugi, false, null));
    files.put(
        user,
        ugi.doAs(
            (PrivilegedExceptionAction<DistributedFileSystem>)
                () -> (DistributedFileSystem) FileSystem.newInstance(uri, conf)));
  }

  ClientProtocol superuser() {
    return names.get("superuser");
  }

  /** Restarts the file system, and has each user find the way to it again: their connections are of no use then. */
  private void restart() throws Exception {
    restart.run();
    for (String user : names.keySet()) {
      while (!answers(names.get(user)) || !answers(files.get(user).getClient().getNamenode())) {
        Thread.sleep(20);
      }
    }
  }

  private static boolean answers(ClientProtocol name) {
    try {
      name.getServerDefaults();
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  /** Makes an empty folder the place of the calls to come. */
  void begin(String folder) throws IOException {
    if (reserved) {
      // A quota of the root may be in the way.
      levelRoot();
    }
    superuser().mkdirs(folder, FsPermission.createImmutable((short) 0777), true);
    superuser().setPermission(folder, FsPermission.createImmutable((short) 0777));
    if (policy != null) {
      superuser().setErasureCodingPolicy(folder, policy);
    }
    root = folder;
    ids = new HashMap<>();
    watched = files.get("superuser").getInotifyEventStream();
    limited.clear();
  }

  /**
   * Leaves space, blocks and policies of erasure coding out of all answers to come; {@code policy}: what each folder of calls
   * gets, or null.
   */
  void forgetSpace(String policy) {
    isSpaceTold = false;
    this.policy = policy;
  }

  /** Makes the root what it was: by reserved names calls reach it. */
  private void levelRoot() throws IOException {
    ClientProtocol name = superuser();
    name.setOwner("/", superuser, "supergroup");
    name.removeAcl("/");
    name.setPermission("/", FsPermission.getDirDefault());
    // The most there is says to leave it as it is.
    name.setQuota("/", Long.MAX_VALUE - 1, HdfsConstants.QUOTA_RESET, null);
    name.unsetStoragePolicy("/");
    try {
      name.unsetErasureCodingPolicy("/");
    } catch (RemoteException e) {
      // There is none.
    }
    for (XAttr attribute : name.listXAttrs("/")) {
      name.removeXAttr("/", attribute);
    }
  }

  /** What those are told who have watched since the beginning. */
  List<String> events() throws Exception {
    String end = root + "/end-of-events";
    if (reserved) {
      levelRoot();
    }
    try {
      superuser().setQuota(root, HdfsConstants.QUOTA_RESET, HdfsConstants.QUOTA_RESET, null);
    } catch (RemoteException e) {
      // The calls have deleted the folder: it is made again.
    }
    HdfsFileStatus status = superuser().getFileInfo(root);
    if (status != null && !status.isDirectory()) {
      // A rename has put a file in its place.
      superuser().delete(root, false);
    }
    superuser().mkdirs(end, FsPermission.getDirDefault(), true);
    return Events.until(watched, end).stream().map(this::normal).toList();
  }

  /** Notes a folder that may have quotas by type of storage. */
  void noteLimits(String path) {
    try {
      HdfsFileStatus status = superuser().getFileInfo(path);
      if (status != null) {
        limited.add(status.getFileId());
      }
    } catch (IOException e) {
      // No folder can be there.
      return;
    }
  }

  /**
   * Takes off all quotas and sets them again: Hadoop counts bytes by type of storage rightly then, but not when policies
   * change, when files move between policies, nor when files without one are appended to.
   */
  void countAnew() throws IOException {
    if (limited.isEmpty() || superuser().setSafeMode(HdfsConstants.SafeModeAction.SAFEMODE_GET, false)) {
      return;
    }
    Map<String, QuotaUsage> limits = new LinkedHashMap<>();
    for (long id : List.copyOf(limited)) {
      String path = "/.reserved/.inodes/" + id;
      try {
        QuotaUsage u = superuser().getQuotaUsage(path);
        superuser().setQuota(path, HdfsConstants.QUOTA_RESET, HdfsConstants.QUOTA_RESET, null);
        setTypes(path, u, t -> HdfsConstants.QUOTA_RESET);
        limits.put(path, u);
      } catch (RemoteException e) {
        limited.remove(id);
      }
    }
    for (Map.Entry<String, QuotaUsage> limit : limits.entrySet()) {
      QuotaUsage u = limit.getValue();
      superuser().setQuota(limit.getKey(), u.getQuota(), u.getSpaceQuota(), null);
      setTypes(limit.getKey(), u, u::getTypeQuota);
    }
  }

  private void setTypes(String path, QuotaUsage u, ToLongFunction<StorageType> to) throws IOException {
    for (StorageType t : StorageType.values()) {
      if (u.getTypeQuota(t) != HdfsConstants.QUOTA_RESET) {
        superuser().setQuota(path, HdfsConstants.QUOTA_DONT_SET, to.applyAsLong(t), t);
      }
    }
  }

  /** Removes what the calls have left, with its snapshots. */
  void end() throws IOException {
    SnapshottableDirectoryStatus[] all;
    try {
      all = superuser().getSnapshottableDirListing();
    } catch (RemoteException e) {
      all = null;
    }
    for (SnapshottableDirectoryStatus d : all == null ? new SnapshottableDirectoryStatus[0] : all) {
      String path = d.getFullPath().toUri().getPath();
      if (path.startsWith(root)) {
        SnapshotStatus[] snapshots = superuser().getSnapshotListing(path);
        // Where they are deleted in order, others are only marked.
        Arrays.sort(snapshots, Comparator.comparingInt(SnapshotStatus::getSnapshotID));
        for (SnapshotStatus s : snapshots) {
          superuser().deleteSnapshot(path, DFSUtilClient.bytes2String(s.getDirStatus().getLocalNameInBytes()));
        }
        superuser().disallowSnapshot(path);
      }
    }
    superuser().delete(root, true);
  }

  boolean has(String path) throws IOException {
    return superuser().getFileInfo(path) != null;
  }

  void remove(String path) throws IOException {
    superuser().delete(path, true);
  }

  /** The id of the inode at {@code path}; that of none if there is nothing. */
  private long inode(String path) {
    try {
      HdfsFileStatus status = superuser().getFileInfo(path);
      return status == null ? NO_INODE : status.getFileId();
    } catch (IOException e) {
      return NO_INODE;
    }
  }

  /** What a call is answered, and what the audit log says of it. */
  record Outcome(String answer, List<String> audit) {}

  /** Makes a call. */
  Outcome outcome(Call call) throws Exception {
    audit.mark(superuser());
    String answer = answer(call);
    return new Outcome(answer, audit.since(superuser()).stream().map(this::normal).toList());
  }

  /** What {@code call} is answered here: its result, or the class and message of its exception. */
  String answer(Call call) {
    Door door = new Door(names.get(call.user()), files.get(call.user()), root, pool, ids, this::inode, this::restart);
    String answer;
    try {
      answer = call.body().on(door);
    } catch (RemoteException e) {
      answer = e.getClassName() + ": " + message(e);
    } catch (Exception e) {
      answer = e.getClass().getName() + ": " + message(e);
    }
    return normal(isSpaceTold ? answer : withoutSpace(answer));
  }

  /** The answers of {@link Text} without what says how bytes are kept. */
  private static String withoutSpace(String answer) {
    return answer
        .replaceAll("(?<=[-rwxtT+]) EC ", "  ")
        .replaceAll("(policy \\d+) RS-3-2-contiguous", "$1 ")
        .replaceAll("-?\\d+ ec \\S* names", "ec names")
        .replaceAll("space -?\\d+/", "space /")
        .replaceAll("\\[\\d+\\+[^\\]]*\\]", "[blocks]");
  }

  private static String message(Exception e) {
    // Hadoop sends the stack trace behind the message.
    return String.valueOf(e.getMessage()).replaceAll("(?s)\\n\\s*at .*", "");
  }

  /** Takes out what differs between two runs on the same system. */
  private String normal(String answer) {
    return answer
        .replace(root, "~")
        .replaceAll("\\bInternal error: ", "")
        // How many blocks and nodes there are.
        .replaceAll("(?s)Name node is in safe mode\\..*", "Name node is in safe mode.")
        .replaceAll("user=" + superuser + "\\b", "user=SUPERUSER")
        .replaceAll("\\b" + superuser + ":", "SUPERUSER:")
        .replaceAll("DFSClient_NONMAPREDUCE_-?\\d+_\\d+", "DFSClient")
        .replaceAll("blk_-?\\d+(_\\d+)?", "blk")
        .replaceAll("BP-\\d+-[0-9.]+-\\d+", "BP")
        .replaceAll("127\\.0\\.0\\.1(:\\d+)?", "HOST")
        // The number of a snapshot that is marked as deleted.
        .replaceAll("#\\d+", "#N")
        .replaceAll("\\.inodes/(\\d+|\\[[^\\]]*\\])", ".inodes/N")
        .replaceAll("inode \\d+", "inode N")
        .replaceAll("inodeId? ?=? ?\\d+", "inode N")
        .replaceAll("[iI]d=\\d+", "id=N")
        // What any client has sent last.
        .replaceAll("unknownValue=\\w+", "unknownValue=V")
        // Whether nodes that cannot take a block of the wanted type count as excluded.
        .replaceAll("and (no|\\d+) node\\(s\\) are excluded", "and N node(s) are excluded");
  }

  @Override
  public void close() throws Exception {
    for (DistributedFileSystem fs : files.values()) {
      fs.close();
    }
  }
}
