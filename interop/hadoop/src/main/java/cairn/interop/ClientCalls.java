package cairn.interop;

import cairn.interop.differential.Events;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BatchedRemoteIterator.BatchedEntries;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.CacheFlag;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.PartialListing;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSInotifyEventInputStream;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.inotify.Event;
import org.apache.hadoop.hdfs.inotify.EventBatch;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveEntry;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveInfo;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveStats;
import org.apache.hadoop.hdfs.protocol.CachePoolInfo;
import org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ECTopologyVerifierResult;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.ReencryptAction;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.OpenFileEntry;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.net.NetUtils;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;

/**
 * Calls of Hadoop's Java client that no command makes, for transcripts: {@code call METHOD ARGUMENT...}. Prints what
 * comes back, or the exception's class and first line.
 */
final class ClientCalls {
  private static DFSInotifyEventInputStream watched;

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
      case "rename2" -> nn.rename2(path, args[2]);
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
      case "addCachePool" -> nn.addCachePool(new CachePoolInfo(path));
      case "removeCachePool" -> nn.removeCachePool(path);
      case "addCacheDirective" ->
          out.append(nn.addCacheDirective(directive(args), EnumSet.noneOf(CacheFlag.class)));
      case "modifyCacheDirective" ->
          nn.modifyCacheDirective(directive(args), EnumSet.noneOf(CacheFlag.class));
      case "removeCacheDirective" -> nn.removeCacheDirective(Long.parseLong(path));
      case "listCacheDirectives" -> {
        BatchedEntries<CacheDirectiveEntry> found = nn.listCacheDirectives(0, directive(args));
        for (int i = 0; i < found.size(); i++) {
          out.append(found.get(i).getInfo().getPath()).append('\n');
        }
      }
      case "until-cached" -> untilCached(fs);
      case "cached" -> {
        for (BlockLocation block : fs.getFileBlockLocations(new Path(path), 0, Long.MAX_VALUE)) {
          out.append(block.getCachedHosts().length).append(" in memory\n");
        }
      }
      case "getDelegationToken" -> out.append(nn.getDelegationToken(new Text(path)));
      case "renewDelegationToken" -> out.append(nn.renewDelegationToken(new Token<>()));
      case "cancelDelegationToken" -> nn.cancelDelegationToken(new Token<>());
      case "getDataEncryptionKey" -> out.append(nn.getDataEncryptionKey());
      case "createEncryptionZone" -> nn.createEncryptionZone(path, args[2]);
      case "getEZForPath" -> out.append(nn.getEZForPath(path));
      case "reencrypt" -> nn.reencryptEncryptionZone(path, ReencryptAction.START);
      case "satisfyStoragePolicy" -> nn.satisfyStoragePolicy(path);
      case "slowDatanodes" -> out.append(nn.getSlowDatanodeReport().length);
      case "ecTopology" -> {
        ECTopologyVerifierResult told =
            nn.getECTopologyResultForPolicies(Arrays.copyOfRange(args, 1, args.length));
        out.append(told.isSupported()).append(": ").append(told.getResultMessage());
      }
      case "proxy" -> {
        // One user who acts for another.
        UserGroupInformation real = UserGroupInformation.createRemoteUser(args[1]);
        UserGroupInformation proxy = UserGroupInformation.createProxyUser(args[2], real);
        FileStatus seen =
            proxy.doAs(
                (PrivilegedExceptionAction<FileStatus>)
                    () -> FileSystem.newInstance(fs.getConf()).getFileStatus(new Path(args[3])));
        out.append(seen.getPath().toUri().getPath());
      }
      case "proxyAtDataNode" -> {
        // What anybody may ask, and what only the superuser may.
        UserGroupInformation real = UserGroupInformation.createRemoteUser(args[1]);
        ClientDatanodeProtocol node =
            DFSUtilClient.createClientDatanodeProtocolProxy(
                NetUtils.createSocketAddr(args[3]),
                UserGroupInformation.createProxyUser(args[2], real),
                fs.getConf(),
                NetUtils.getDefaultSocketFactory(fs.getConf()));
        out.append("version ").append(node.getDatanodeInfo().getSoftwareVersion()).append('\n');
        node.evictWriters();
      }
      case "watch" -> watched = fs.getInotifyEventStream();
      case "watched" -> {
        // Until nothing comes for a while: the last change may not be told of at once.
        EventBatch batch;
        while ((batch = watched.poll(2, TimeUnit.SECONDS)) != null) {
          for (Event event : batch.getEvents()) {
            out.append(Events.text(event)).append('\n');
          }
        }
      }
      case "serverDefaults" -> {
        FsServerDefaults told = nn.getServerDefaults();
        out.append("trash ").append(told.getTrashInterval());
        out.append(" block ").append(told.getBlockSize());
        out.append(" copies ").append(told.getReplication());
        out.append(" packet ").append(told.getWritePacketSize());
        out.append(" chunk ").append(told.getBytesPerChecksum());
        out.append(" buffer ").append(told.getFileBufferSize());
        out.append(" keys ").append(told.getKeyProviderUri());
        out.append(" policy ").append(told.getDefaultStoragePolicyId());
        out.append(" snapshot trash ").append(told.getSnapshotTrashRootEnabled());
      }
      case "setTimes" -> nn.setTimes(path, Long.parseLong(args[2]), Long.parseLong(args[3]));
      case "mkdirs" -> out.append(nn.mkdirs(path, FsPermission.getDirDefault(), true));
      default -> throw new IllegalArgumentException("unknown call " + args[0]);
    }
  }

  /** Waits until what is in memory is what directives ask for, where there is memory for it. */
  private static void untilCached(DistributedFileSystem fs) throws Exception {
    long end = System.nanoTime() + 60_000_000_000L;
    while (true) {
      long room = 0;
      long used = 0;
      for (DatanodeInfo node : fs.getDataNodeStats()) {
        room += node.getCacheCapacity();
        used += node.getCacheUsed();
      }
      long missing = 0;
      boolean any = false;
      RemoteIterator<CacheDirectiveEntry> found = fs.listCacheDirectives(null);
      while (found.hasNext()) {
        CacheDirectiveStats stats = found.next().getStats();
        any = true;
        missing += stats.getBytesNeeded() - stats.getBytesCached();
      }
      if (room == 0 || (missing == 0 && any == used > 0)) {
        return;
      }
      if (System.nanoTime() > end) {
        throw new IOException(missing + " bytes are not in memory after 60 s");
      }
      Thread.sleep(100);
    }
  }

  /** A directive from words of the form {@code key=value}. */
  private static CacheDirectiveInfo directive(String[] args) {
    CacheDirectiveInfo.Builder directive = new CacheDirectiveInfo.Builder();
    for (String arg : Arrays.copyOfRange(args, 1, args.length)) {
      String value = arg.substring(arg.indexOf('=') + 1);
      switch (arg.substring(0, arg.indexOf('='))) {
        case "path" -> directive.setPath(new Path(value));
        case "pool" -> directive.setPool(value);
        case "id" -> directive.setId(Long.parseLong(value));
        case "replication" -> directive.setReplication(Short.parseShort(value));
        case "relative" ->
            directive.setExpiration(CacheDirectiveInfo.Expiration.newRelative(Long.parseLong(value)));
        case "absolute" ->
            directive.setExpiration(CacheDirectiveInfo.Expiration.newAbsolute(Long.parseLong(value)));
        default -> throw new IllegalArgumentException(arg);
      }
    }
    return directive.build();
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
