package cairn.interop.differential;

import java.io.IOException;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSInotifyEventInputStream;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.NameNodeProxiesClient;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.SnapshotStatus;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.UserGroupInformation;

/** One of the two file systems that get the same calls. */
final class Side implements AutoCloseable {
  private final String superuser = UserGroupInformation.getCurrentUser().getShortUserName();
  private final Map<String, ClientProtocol> names = new HashMap<>();
  private final Map<String, DistributedFileSystem> files = new HashMap<>();
  private Map<String, Long> ids = new HashMap<>();
  private String root = "/";
  private DFSInotifyEventInputStream watched;

  /** Connects as the superuser and as each of {@code users}. */
  Side(URI uri, Configuration conf, List<String> users) throws Exception {
    open(uri, conf, "superuser", UserGroupInformation.getCurrentUser());
    for (String user : users) {
      open(uri, conf, user, UserGroupInformation.createRemoteUser(user));
    }
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

  /** Makes an empty folder the place of the calls to come. */
  void begin(String folder) throws IOException {
    superuser().mkdirs(folder, FsPermission.createImmutable((short) 0777), true);
    superuser().setPermission(folder, FsPermission.createImmutable((short) 0777));
    root = folder;
    ids = new HashMap<>();
    watched = files.get("superuser").getInotifyEventStream();
  }

  /** What those are told who have watched since the beginning. */
  List<String> events() throws Exception {
    String end = root + "/end-of-events";
    superuser().mkdirs(end, FsPermission.getDirDefault(), true);
    return Events.until(watched, end).stream().map(this::normal).toList();
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
        for (SnapshotStatus s : superuser().getSnapshotListing(path)) {
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

  /** What {@code call} is answered here: its result, or the class and message of its exception. */
  String answer(Call call) {
    Door door = new Door(names.get(call.user()), files.get(call.user()), root, ids);
    String answer;
    try {
      answer = call.body().on(door);
    } catch (RemoteException e) {
      answer = e.getClassName() + ": " + message(e);
    } catch (Exception e) {
      answer = e.getClass().getName() + ": " + message(e);
    }
    return normal(answer);
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
        .replaceAll("user=" + superuser + "\\b", "user=SUPERUSER")
        .replaceAll("\\b" + superuser + ":", "SUPERUSER:")
        .replaceAll("DFSClient_NONMAPREDUCE_-?\\d+_\\d+", "DFSClient")
        .replaceAll("blk_-?\\d+(_\\d+)?", "blk")
        .replaceAll("BP-\\d+-[0-9.]+-\\d+", "BP")
        .replaceAll("127\\.0\\.0\\.1(:\\d+)?", "HOST")
        .replaceAll("inode \\d+", "inode N")
        .replaceAll("inodeId? ?=? ?\\d+", "inode N")
        .replaceAll("[iI]d=\\d+", "id=N")
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
