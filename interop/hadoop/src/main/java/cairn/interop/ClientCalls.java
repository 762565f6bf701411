package cairn.interop;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BatchedRemoteIterator.BatchedEntries;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.PartialListing;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.OpenFileEntry;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Calls of Hadoop's Java client that no command makes, for transcripts: {@code call METHOD ARGUMENT...}. Prints what
 * comes back, or the exception's class and first line.
 */
final class ClientCalls {
  private ClientCalls() {}

  static Shell.Result run(Configuration conf, String user, String[] args) throws Exception {
    UserGroupInformation ugi =
        user == null
            ? UserGroupInformation.getLoginUser()
            : UserGroupInformation.createRemoteUser(user);
    StringBuilder out = new StringBuilder();
    try {
      ugi.doAs(
          (PrivilegedExceptionAction<Void>)
              () -> {
                DistributedFileSystem fs = (DistributedFileSystem) FileSystem.get(conf);
                call(fs, args, out);
                return null;
              });
    } catch (IOException | RuntimeException e) {
      String message = String.valueOf(e.getMessage()).split("\n")[0];
      String name = e.getClass().getName();
      if (e instanceof org.apache.hadoop.ipc.RemoteException remote) {
        name = remote.getClassName();
      }
      return new Shell.Result(1, bytes(out), name + ": " + message);
    }
    return new Shell.Result(0, bytes(out), "");
  }

  private static byte[] bytes(StringBuilder text) {
    return text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static void call(DistributedFileSystem fs, String[] args, StringBuilder out)
      throws Exception {
    ClientProtocol nn = fs.getClient().getNamenode();
    String path = args.length > 1 ? args[1] : "/";
    switch (args[0]) {
      case "truncate" -> out.append(fs.truncate(new Path(path), Long.parseLong(args[2])));
      case "until-closed" -> {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!fs.isFileClosed(new Path(path))) {
          if (System.nanoTime() > end) {
            throw new IOException(path + " is open after 60 s");
          }
          Thread.sleep(100);
        }
      }
      case "isFileClosed" -> out.append(fs.isFileClosed(new Path(path)));
      case "length" -> out.append(fs.getFileStatus(new Path(path)).getLen());
      case "concat" -> nn.concat(path, Arrays.copyOfRange(args, 2, args.length));
      case "append" -> {
        EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.APPEND);
        if (args.length > 3) {
          flags.add(CreateFlag.NEW_BLOCK);
        }
        try (FSDataOutputStream stream = fs.append(new Path(path), flags, 4096, null)) {
          stream.write(args[2].getBytes(StandardCharsets.UTF_8));
        }
      }
      case "createSymlink" ->
          nn.createSymlink(args[1], args[2], FsPermission.getDefault(), false);
      case "getLinkTarget" -> out.append(nn.getLinkTarget(path));
      case "getFileLinkInfo" -> status(nn.getFileLinkInfo(path), out);
      case "getFileInfo" -> status(nn.getFileInfo(path), out);
      case "inode" -> {
        String id = "/.reserved/.inodes/" + nn.getFileInfo(path).getFileId();
        status(nn.getFileInfo(id + (args.length > 2 ? args[2] : "")), out);
      }
      case "inodes" -> {
        // A call by the path of an inode.
        String[] other = args.clone();
        other[2] = "/.reserved/.inodes/" + nn.getFileInfo(args[2]).getFileId();
        call(fs, Arrays.copyOfRange(other, 1, other.length), out);
      }
      case "list" -> {
        for (HdfsFileStatus entry : nn.getListing(path, new byte[0], false).getPartialListing()) {
          out.append(entry.getLocalName()).append(' ');
          status(entry, out);
        }
      }
      case "batched" -> {
        List<Path> paths = Arrays.stream(args).skip(1).map(Path::new).toList();
        RemoteIterator<PartialListing<FileStatus>> pages = fs.batchedListStatusIterator(paths);
        while (pages.hasNext()) {
          PartialListing<FileStatus> page = pages.next();
          out.append(page.getListedPath().toUri().getPath()).append(':');
          try {
            for (FileStatus entry : page.get()) {
              out.append(' ').append(entry.getPath().getName());
            }
          } catch (IOException e) {
            out.append(' ').append(e.getClass().getName()).append(": ");
            out.append(String.valueOf(e.getMessage()).split("\n")[0]);
          }
          out.append('\n');
        }
      }
      case "setXAttr" ->
          fs.setXAttr(
              new Path(path),
              args[2],
              args.length > 3 ? args[3].getBytes(StandardCharsets.UTF_8) : null,
              EnumSet.allOf(XAttrSetFlag.class));
      case "removeXAttr" -> fs.removeXAttr(new Path(path), args[2]);
      case "getXAttr" ->
          out.append(new String(fs.getXAttr(new Path(path), args[2]), StandardCharsets.UTF_8));
      case "getXAttrs" -> out.append(new TreeMap<>(fs.getXAttrs(new Path(path))).keySet());
      case "setTypeQuota" ->
          fs.setQuotaByStorageType(
              new Path(path), StorageType.valueOf(args[2]), Long.parseLong(args[3]));
      case "quota" -> {
        QuotaUsage usage =
            args.length > 2 ? fs.getContentSummary(new Path(path)) : fs.getQuotaUsage(new Path(path));
        out.append("names ").append(usage.getFileAndDirectoryCount());
        out.append(" of ").append(usage.getQuota());
        out.append(", space ").append(usage.getSpaceConsumed());
        out.append(" of ").append(usage.getSpaceQuota());
        for (StorageType type : StorageType.getTypesSupportingQuota()) {
          out.append(", ").append(type).append(' ').append(usage.getTypeConsumed(type));
          out.append(" of ").append(usage.getTypeQuota(type));
        }
      }
      case "enclosingRoot" -> out.append(nn.getEnclosingRoot(path));
      case "located" -> {
        HdfsFileStatus found = nn.getLocatedFileInfo(path, false);
        if (found == null) {
          throw new FileNotFoundException(path);
        }
        status(found, out);
      }
      case "openFiles" -> {
        BatchedEntries<OpenFileEntry> open =
            nn.listOpenFiles(0, EnumSet.of(OpenFilesType.ALL_OPEN_FILES), path);
        for (int i = 0; i < open.size(); i++) {
          out.append(open.get(i).getFilePath()).append('\n');
        }
      }
      case "corrupt" -> {
        String[] files = nn.listCorruptFileBlocks(path, null).getFiles();
        Arrays.sort(files);
        out.append(Arrays.toString(files));
      }
      case "preferredBlockSize" -> out.append(nn.getPreferredBlockSize(path));
      case "mkdirs" -> out.append(nn.mkdirs(path, FsPermission.getDirDefault(), true));
      default -> throw new IllegalArgumentException("unknown call " + args[0]);
    }
  }

  private static void status(HdfsFileStatus s, StringBuilder out) {
    if (s == null) {
      out.append("null\n");
      return;
    }
    out.append(s.isDirectory() ? "directory " : "file ");
    out.append(s.getPermission()).append(' ').append(s.getOwner()).append(':').append(s.getGroup());
    out.append(" len ").append(s.getLen()).append(" copies ").append(s.getReplication());
    out.append(" children ").append(s.getChildrenNum());
    out.append(s.hasAcl() ? " acl" : "").append(s.isErasureCoded() ? " ec" : "").append('\n');
  }
}
