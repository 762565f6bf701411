package cairn.interop.differential;

import static cairn.interop.differential.Generator.arg;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.SnapshotStatus;

/**
 * Snapshots that are deleted in order, and trash of snapshottable directories, where keys say so. A snapshot that is marked as
 * deleted has its number in its name: a call means the first whose name begins as it says.
 */
final class OrderedCalls {
  private static final String FAMILY = "ordered";

  private interface OnSnapshot {
    String on(Door door, String path, String snapshot) throws Exception;
  }

  private final Generator g;

  private OrderedCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    OrderedCalls calls = new OrderedCalls(g);
    calls.snapshots();
    calls.questions();
    calls.trash();
  }

  /** One of few folders, so that some get snapshots enough. */
  private String folder(StringBuilder text) {
    return arg(text, "~/" + g.pick(List.of("a", "b", "a/b")));
  }

  /** Something in one of them. */
  private String below(StringBuilder text, List<String> names) {
    return arg(text, folder(new StringBuilder()) + g.pick(names));
  }

  /** The snapshot whose name begins with {@code start}, or that itself. */
  private static String named(Door d, String path, String start) {
    try {
      for (SnapshotStatus s : d.files().getClient().getNamenode().getSnapshotListing(path)) {
        String name = DFSUtilClient.bytes2String(s.getDirStatus().getLocalNameInBytes());
        if (name.startsWith(start)) {
          return name;
        }
      }
    } catch (Exception e) {
      // Whatever it is, the call is told as well.
      return start;
    }
    return start;
  }

  private void add(int weight, String name, OnSnapshot call) {
    g.add(FAMILY, weight, name, t -> {
      String p = folder(t);
      String s = arg(t, g.pick(List.of("s0", "s1", "s2", "s3", "s0#", "s1#", "s2#")));
      return d -> call.on(d, d.at(p), named(d, d.at(p), s));
    });
  }

  private void snapshots() {
    g.add(FAMILY, 4, "allowSnapshot", t -> {
      String p = folder(t);
      return d -> Call.done(() -> d.name().allowSnapshot(d.at(p)));
    });
    g.add(FAMILY, 1, "disallowSnapshot", t -> {
      String p = folder(t);
      return d -> Call.done(() -> d.name().disallowSnapshot(d.at(p)));
    });
    g.add(FAMILY, 8, "createSnapshot", t -> {
      String p = folder(t);
      String s = arg(t, g.pick(List.of("s0", "s1", "s2", "s3")));
      return d -> d.name().createSnapshot(d.at(p), s);
    });
    add(8, "deleteSnapshot", (d, p, s) -> Call.done(() -> d.name().deleteSnapshot(p, s)));
    add(1, "renameSnapshot", (d, p, s) -> Call.done(() -> d.name().renameSnapshot(p, s, "s1")));
  }

  /** Hadoop tells the storage policy of now, see docs/deviations.md. */
  private static String withoutPolicy(String status) {
    return status.replaceAll(" policy \\d+", "");
  }

  private static String status(SnapshotStatus s) {
    return Text.status(s.getDirStatus())
        + (s.isDeleted() ? " deleted in " : " in ")
        + DFSUtilClient.bytes2String(s.getParentFullPath());
  }

  private void questions() {
    g.add(FAMILY, 3, "getSnapshotListing", t -> {
      String p = folder(t);
      return d -> {
        List<String> lines = new ArrayList<>();
        for (SnapshotStatus s : d.name().getSnapshotListing(d.at(p))) {
          lines.add(status(s));
        }
        return lines.toString();
      };
    });
    g.add(FAMILY, 3, "getListing", t -> {
      String p = folder(t);
      return d -> Text.listing(d.name().getListing(d.at(p) + "/.snapshot", new byte[0], false));
    });
    add(3, "getContentSummary", (d, p, s) -> Text.summary(d.name().getContentSummary(p + "/.snapshot/" + s)));
    add(1, "getQuotaUsage", (d, p, s) -> Text.usage(d.name().getQuotaUsage(p + "/.snapshot/" + s)));
    add(2, "getFileInfo", (d, p, s) -> withoutPolicy(Text.status(d.name().getFileInfo(p + "/.snapshot/" + s))));
    add(2, "getListing", (d, p, s) ->
        withoutPolicy(Text.listing(d.name().getListing(p + "/.snapshot/" + s, new byte[0], false))));
    add(1, "getXAttrs", (d, p, s) -> Text.attributes(d.name().getXAttrs(p + "/.snapshot/" + s, null)));
    add(1, "listXAttrs", (d, p, s) -> Text.attributes(d.name().listXAttrs(p + "/.snapshot/" + s)));
    add(1, "getAclStatus", (d, p, s) -> d.name().getAclStatus(p + "/.snapshot/" + s).toString());
    add(1, "getErasureCodingPolicy", (d, p, s) -> {
      var policy = d.name().getErasureCodingPolicy(p + "/.snapshot/" + s);
      return policy == null ? "none" : policy.getName();
    });
    add(2, "getSnapshotDiffReport", (d, p, s) -> Text.diff(d.name().getSnapshotDiffReport(p, s, "")));
    add(2, "getSnapshotDiffReport", (d, p, s) ->
        Text.diff(d.name().getSnapshotDiffReport(p, named(d, p, "s0"), s)));
  }

  private void trash() {
    g.add(FAMILY, 2, "mkdirs", t -> {
      String p = below(t, List.of("/.Trash", "/.Trash/alice/Current", "/c"));
      return d -> "" + d.name().mkdirs(d.at(p), FsPermission.getDirDefault(), true);
    });
    g.add(FAMILY, 2, "delete", t -> {
      String p = below(t, List.of("/.Trash"));
      return d -> "" + d.name().delete(d.at(p), true);
    });
    g.add(FAMILY, 4, "rename2", t -> {
      String from = g.path(t);
      String to = below(t, List.of("", "/x", "/.Trash/alice/Current/y", "/b"));
      Options.Rename option = arg(t, g.pick(List.of(Options.Rename.NONE, Options.Rename.TO_TRASH)));
      return d -> Call.done(() -> d.name().rename2(d.at(from), d.at(to), option));
    });
    g.add(FAMILY, 2, "rename", t -> {
      String from = below(t, List.of("", "/c", "/b"));
      String to = g.path(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    g.add(FAMILY, 1, "getServerDefaults", t -> d -> "" + d.name().getServerDefaults().getSnapshotTrashRootEnabled());
    g.add(FAMILY, 1, "getSnapshottableDirListing", t -> d -> {
      List<String> lines = new ArrayList<>();
      var all = d.name().getSnapshottableDirListing();
      for (int i = 0; all != null && i < all.length; i++) {
        String path = all[i].getFullPath().toUri().getPath();
        if (path.startsWith(d.root())) {
          HdfsFileStatus s = all[i].getDirStatus();
          lines.add(path + " " + Text.status(s) + " " + all[i].getSnapshotNumber() + " of " + all[i].getSnapshotQuota());
        }
      }
      return lines.toString();
    });
  }
}
