package cairn.interop.differential;

import static cairn.interop.differential.Generator.BLOCK;
import static cairn.interop.differential.Generator.arg;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;
import org.apache.hadoop.io.EnumSetWritable;

/** Every method that takes a path, with one that leads to, into or through the list of a directory's snapshots. */
final class SnapshotPathCalls {
  private static final String FAMILY = "snapshot-paths";
  private static final FsPermission MODE = FsPermission.getDirDefault();

  /** A call on a path. */
  private interface OnPath {
    String on(Door door, String path) throws Exception;
  }

  /** One that answers nothing. */
  private interface OnPathOnly {
    void on(Door door, String path) throws Exception;
  }

  /** A call on two. */
  private interface OnPaths {
    String on(Door door, String path, String other) throws Exception;
  }

  private final Generator g;

  private SnapshotPathCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    SnapshotPathCalls calls = new SnapshotPathCalls(g);
    calls.snapshots();
    calls.questions();
    calls.changes();
    calls.moves();
  }

  private String path(StringBuilder text) {
    List<String> ends =
        List.of("", "/", "/s0", "/s1", "/s0/a", "/s1/a/b", "/s2/b", "/none", "/s0/.snapshot", "/s0/a/.snapshot/s1", "/../a");
    return arg(text, (g.chance(30) ? "~" : g.plain()) + "/.snapshot" + g.pick(ends));
  }

  private void ask(int weight, String name, OnPath call) {
    g.add(FAMILY, weight, name, t -> {
      String p = path(t);
      return d -> call.on(d, d.at(p));
    });
  }

  private void change(String name, OnPathOnly call) {
    ask(1, name, (d, p) -> Call.done(() -> call.on(d, p)));
  }

  /** Both ways: out of snapshots and into them. */
  private void move(String name, OnPaths call) {
    g.add(FAMILY, 1, name, t -> {
      String from = path(t);
      String to = g.path(t);
      return d -> call.on(d, d.at(from), d.at(to));
    });
    g.add(FAMILY, 1, name, t -> {
      String from = g.path(t);
      String to = path(t);
      return d -> call.on(d, d.at(from), d.at(to));
    });
  }

  /** Those that there are something to say of. */
  private void snapshots() {
    g.add(FAMILY, 3, "allowSnapshot", t -> {
      String p = g.chance(30) ? arg(t, "~") : g.path(t);
      return d -> Call.done(() -> d.name().allowSnapshot(d.at(p)));
    });
    g.add(FAMILY, 3, "createSnapshot", t -> {
      String p = g.chance(30) ? arg(t, "~") : g.someOf(t);
      String s = arg(t, g.pick(List.of("s0", "s1", "s2")));
      return d -> d.name().createSnapshot(d.at(p), s);
    });
  }

  private void questions() {
    ask(3, "getFileInfo", (d, p) -> Text.status(d.name().getFileInfo(p)));
    ask(1, "getFileLinkInfo", (d, p) -> Text.status(d.name().getFileLinkInfo(p)));
    ask(1, "getLocatedFileInfo", (d, p) -> Text.status(d.name().getLocatedFileInfo(p, false)));
    ask(3, "getContentSummary", (d, p) -> Text.summary(d.name().getContentSummary(p)));
    ask(3, "getQuotaUsage", (d, p) -> Text.usage(d.name().getQuotaUsage(p)));
    ask(2, "getXAttrs", (d, p) -> Text.attributes(d.name().getXAttrs(p, null)));
    ask(1, "listXAttrs", (d, p) -> Text.attributes(d.name().listXAttrs(p)));
    ask(3, "getAclStatus", (d, p) -> d.name().getAclStatus(p).toString());
    ask(2, "getStoragePolicy", (d, p) -> d.name().getStoragePolicy(p).getName());
    ask(3, "getErasureCodingPolicy", (d, p) -> {
      var policy = d.name().getErasureCodingPolicy(p);
      return policy == null ? "none" : policy.getName();
    });
    ask(1, "getEnclosingRoot", (d, p) -> "" + d.name().getEnclosingRoot(p));
    ask(1, "getEZForPath", (d, p) -> "" + d.name().getEZForPath(p));
    ask(1, "getPreferredBlockSize", (d, p) -> "" + d.name().getPreferredBlockSize(p));
    ask(1, "isFileClosed", (d, p) -> "" + d.name().isFileClosed(p));
    ask(1, "getLinkTarget", (d, p) -> d.name().getLinkTarget(p));
    ask(1, "getSnapshotListing", (d, p) -> "" + d.name().getSnapshotListing(p).length);
    ask(1, "getSnapshotDiffReport", (d, p) -> {
      String told = Text.diff(d.name().getSnapshotDiffReport(p, "s0", "s1"));
      // At a snapshot's own path Hadoop leaves some of it out, see docs/deviations.md.
      return p.matches(".*/\\.snapshot/[^/]+") ? "a report" : told;
    });
    ask(1, "listOpenFiles", (d, p) -> "" + d.name().listOpenFiles(0, EnumSet.of(OpenFilesType.ALL_OPEN_FILES), p).size());
    ask(1, "listCorruptFileBlocks", (d, p) -> Arrays.toString(d.name().listCorruptFileBlocks(p, null).getFiles()));
    g.add(FAMILY, 2, "getListing", t -> {
      String p = path(t);
      byte[] after = arg(t, g.pick(List.of("", "s0", "a"))).getBytes();
      return d -> Text.listing(d.name().getListing(d.at(p), after, false));
    });
    g.add(FAMILY, 2, "checkAccess", t -> {
      String p = path(t);
      FsAction access = arg(t, g.pick(Arrays.asList(FsAction.values())));
      return d -> Call.done(() -> d.name().checkAccess(d.at(p), access));
    });
  }

  private void changes() {
    XAttr attribute =
        new XAttr.Builder().setNameSpace(XAttr.NameSpace.USER).setName("x").setValue(new byte[] {1}).build();
    List<AclEntry> entries = AclEntry.parseAclSpec("user::rwx,group::r-x,other::r-x,user:bob:rwx", true);
    var replaces = new EnumSetWritable<>(EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE));
    var appends = new EnumSetWritable<>(EnumSet.of(CreateFlag.APPEND));
    var versions = CryptoProtocolVersion.supported();
    ask(1, "mkdirs", (d, p) -> "" + d.name().mkdirs(p, MODE, true));
    ask(1, "create", (d, p) ->
        Text.status(d.name().create(p, MODE, "writer-1", replaces, true, (short) 1, BLOCK, versions, null, null)));
    ask(1, "append", (d, p) -> "" + (d.name().append(p, "writer-1", appends) != null));
    ask(1, "truncate", (d, p) -> "" + d.name().truncate(p, 0, "writer-1"));
    ask(1, "delete", (d, p) -> "" + d.name().delete(p, true));
    ask(1, "setReplication", (d, p) -> "" + d.name().setReplication(p, (short) 2));
    ask(1, "recoverLease", (d, p) -> "" + d.name().recoverLease(p, "writer-1"));
    ask(1, "createSnapshot", (d, p) -> d.name().createSnapshot(p, "s5"));
    change("setPermission", (d, p) -> d.name().setPermission(p, MODE));
    change("setOwner", (d, p) -> d.name().setOwner(p, "alice", null));
    change("setTimes", (d, p) -> d.name().setTimes(p, 5, 5));
    change("setQuota", (d, p) -> d.name().setQuota(p, 5, HdfsConstants.QUOTA_DONT_SET, null));
    change("setStoragePolicy", (d, p) -> d.name().setStoragePolicy(p, "HOT"));
    change("unsetStoragePolicy", (d, p) -> d.name().unsetStoragePolicy(p));
    change("satisfyStoragePolicy", (d, p) -> d.name().satisfyStoragePolicy(p));
    change("setErasureCodingPolicy", (d, p) -> d.name().setErasureCodingPolicy(p, "RS-3-2-1024k"));
    change("unsetErasureCodingPolicy", (d, p) -> d.name().unsetErasureCodingPolicy(p));
    change("setXAttr", (d, p) -> d.name().setXAttr(p, attribute, EnumSet.of(XAttrSetFlag.CREATE)));
    change("removeXAttr", (d, p) -> d.name().removeXAttr(p, attribute));
    change("setAcl", (d, p) -> d.name().setAcl(p, entries));
    change("removeAcl", (d, p) -> d.name().removeAcl(p));
    change("removeDefaultAcl", (d, p) -> d.name().removeDefaultAcl(p));
    change("allowSnapshot", (d, p) -> d.name().allowSnapshot(p));
    change("disallowSnapshot", (d, p) -> d.name().disallowSnapshot(p));
    change("deleteSnapshot", (d, p) -> d.name().deleteSnapshot(p, "s0"));
    change("renameSnapshot", (d, p) -> d.name().renameSnapshot(p, "s0", "s4"));
    change("createEncryptionZone", (d, p) -> d.name().createEncryptionZone(p, EncryptionCalls.KEYS.get(0)));
    change("createSymlink", (d, p) -> d.name().createSymlink("/x", p, MODE, true));
  }

  private void moves() {
    move("rename", (d, p, q) -> "" + d.name().rename(p, q));
    move("rename2", (d, p, q) -> Call.done(() -> d.name().rename2(p, q, Options.Rename.OVERWRITE)));
    move("concat", (d, p, q) -> Call.done(() -> d.name().concat(q, new String[] {p})));
  }
}
