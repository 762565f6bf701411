package cairn.interop.differential;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.BatchedDirectoryListing;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicyInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.ReencryptAction;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.RollingUpgradeAction;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.hadoop.hdfs.protocol.HdfsPartialListing;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;
import org.apache.hadoop.hdfs.protocol.SnapshotDiffReportListing;
import org.apache.hadoop.hdfs.protocol.SnapshotDiffReportListing.DiffReportListingEntry;
import org.apache.hadoop.io.EnumSetWritable;

/**
 * Calls that no file system's user makes, and arguments at the ends of what a field can hold: names that are too long,
 * too deep or in no plain letters, the least and the greatest numbers, lists that are too long.
 */
final class EdgeCalls {
  private static final List<Long> ENDS =
      List.of(Long.MIN_VALUE, Long.MIN_VALUE + 1, -2L, -1L, 0L, 1L, Long.MAX_VALUE - 1, Long.MAX_VALUE);
  private static final List<Short> SHORT_ENDS =
      List.of(Short.MIN_VALUE, (short) -1, (short) 0, (short) 512, (short) 513, Short.MAX_VALUE);
  private static final List<String> NAMES =
      List.of(
          "n".repeat(255),
          "n".repeat(256),
          "\u00e9".repeat(127) + "x",
          "\u00e9".repeat(128),
          "\ud83d\ude00".repeat(63),
          "\ud83d\ude00".repeat(64),
          "a\u0001b",
          "a\u0000b",
          "a\nb",
          "a\\b",
          "\ufffd",
          "\ud800",
          "%2f",
          "*",
          "a:b",
          ":",
          "..",
          ".",
          "...",
          ".snapshot",
          ".reserved",
          ".Trash",
          "_COPYING_",
          "d/".repeat(999) + "d",
          "d/".repeat(1001) + "d",
          ("n".repeat(200) + "/").repeat(39),
          ("n".repeat(200) + "/").repeat(41));

  private final Generator g;

  private EdgeCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    EdgeCalls calls = new EdgeCalls(g);
    calls.names();
    calls.numbers();
    calls.lists();
    calls.blocks();
    calls.listings();
    calls.admin();
  }

  private void add(int weight, String name, Generator.Maker maker) {
    g.add("edges", weight, name, maker);
  }

  private long end(StringBuilder text) {
    return Generator.arg(text, g.pick(ENDS));
  }

  /** A name in no plain letters has a folder for itself: Hadoop orders them otherwise in listings. */
  private String name(StringBuilder text) {
    String name = g.pick(NAMES);
    String folder = name.chars().allMatch(c -> c < 128) ? (g.chance(50) ? "a/" : "") : "own" + NAMES.indexOf(name) + "/";
    return Generator.arg(text, "~/" + folder + name);
  }

  private void names() {
    add(4, "mkdirs", t -> {
      String p = name(t);
      boolean parents = Generator.arg(t, g.chance(50));
      return d -> "" + d.name().mkdirs(d.at(p), FsPermission.getDirDefault(), parents);
    });
    add(3, "create", t -> {
      String p = name(t);
      return d -> create(d, p, (short) 1, 1 << 20);
    });
    add(3, "rename", t -> {
      String from = g.path(t);
      String to = name(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    add(3, "rename2", t -> {
      String from = g.path(t);
      String to = name(t);
      return d -> Call.done(() -> d.name().rename2(d.at(from), d.at(to)));
    });
    add(1, "rename", t -> {
      String from = name(t);
      String to = g.path(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    add(2, "delete", t -> {
      String p = name(t);
      return d -> "" + d.name().delete(d.at(p), true);
    });
    add(2, "getFileInfo", t -> {
      String p = name(t);
      return d -> Text.status(d.name().getFileInfo(d.at(p)));
    });
    add(1, "concat", t -> {
      String to = g.path(t);
      String from = name(t);
      return d -> Call.done(() -> d.name().concat(d.at(to), new String[] {d.at(from), d.at(from)}));
    });
    add(1, "createSnapshot", t -> {
      String p = g.someOf(t);
      String snapshot = Generator.arg(t, g.pick(NAMES));
      return d -> d.name().createSnapshot(d.at(p), snapshot);
    });
    add(1, "setOwner", t -> {
      String p = g.path(t);
      String owner = Generator.arg(t, "o".repeat(g.pick(List.of(1, 255, 5000))));
      return d -> Call.done(() -> d.name().setOwner(d.at(p), owner, null));
    });
    add(1, "setStoragePolicy", t -> {
      String p = g.path(t);
      String policy = Generator.arg(t, g.pick(NAMES));
      return d -> Call.done(() -> d.name().setStoragePolicy(d.at(p), policy));
    });
  }

  private static String create(Door d, String p, short replication, long block) throws Exception {
    var flags = new EnumSetWritable<>(EnumSet.of(CreateFlag.CREATE));
    var made =
        d.name()
            .create(d.at(p), FsPermission.getFileDefault(), "writer-1", flags, true, replication, block, CryptoProtocolVersion.supported(), null, null);
    d.ids().put(d.at(p), made.getFileId());
    return Text.status(made);
  }

  private void numbers() {
    add(3, "create", t -> {
      String p = g.path(t);
      short replication = Generator.arg(t, g.pick(SHORT_ENDS));
      long block = end(t);
      boolean known = Generator.arg(t, g.chance(50));
      return d -> create(d, p, known ? 1 : replication, block);
    });
    add(2, "setReplication", t -> {
      String p = g.path(t);
      short replication = Generator.arg(t, g.pick(SHORT_ENDS));
      return d -> "" + d.name().setReplication(d.at(p), replication);
    });
    add(2, "truncate", t -> {
      String p = g.path(t);
      long length = end(t);
      return d -> "" + d.name().truncate(d.at(p), length == 1 ? 0 : length, "writer-2");
    });
    add(3, "getBlockLocations", t -> {
      String p = g.path(t);
      long offset = end(t);
      long length = end(t);
      return d -> Text.blocks(d.name().getBlockLocations(d.at(p), offset, length));
    });
    add(2, "setTimes", t -> {
      String p = g.path(t);
      long m = end(t);
      long a = end(t);
      return d -> Call.done(() -> d.name().setTimes(d.at(p), m, a));
    });
    add(2, "setQuota", t -> {
      String p = g.path(t);
      long names = end(t);
      long space = end(t);
      return d -> Call.done(() -> d.name().setQuota(d.at(p), names, space, null));
    });
    add(2, "setQuotaByType", t -> {
      String p = g.path(t);
      long names = Generator.arg(t, g.chance(80) ? HdfsConstants.QUOTA_DONT_SET : 5L);
      long space = g.draws("ec") ? Generator.arg(t, g.pick(AttributeCalls.FAR_LIMITS)) : end(t);
      StorageType type = Generator.arg(t, g.pick(Arrays.asList(StorageType.values())));
      return d -> Call.done(() -> d.name().setQuota(d.at(p), names, space, type));
    });
    add(1, "getQuotaUsage", t -> {
      String p = g.path(t);
      return d -> Text.usage(d.name().getQuotaUsage(d.at(p)));
    });
    add(1, "fsync", t -> {
      String p = g.path(t);
      long id = Generator.arg(t, g.chance(50) ? 0L : g.pick(ENDS));
      long length = end(t);
      return d -> Call.done(() -> d.name().fsync(d.at(p), id, "writer-1", length));
    });
    add(1, "complete", t -> {
      String p = g.path(t);
      long id = end(t);
      return d -> "" + d.name().complete(d.at(p), "writer-1", null, id);
    });
    add(1, "setPermission", t -> {
      String p = g.path(t);
      short mode = Generator.arg(t, g.pick(List.of((short) 01777, (short) 02777, (short) 04777, (short) 07777, Short.MIN_VALUE, (short) -1)));
      return d -> Call.done(() -> d.name().setPermission(d.at(p), FsPermission.createImmutable(mode)));
    });
  }

  private void lists() {
    add(2, "modifyAclEntries", t -> {
      String p = g.path(t);
      int n = Generator.arg(t, g.pick(List.of(27, 28, 29, 32, 33, 100)));
      boolean defaults = Generator.arg(t, g.chance(30));
      return d -> Call.done(() -> d.name().modifyAclEntries(d.at(p), entries(n, defaults)));
    });
    add(2, "setAcl", t -> {
      String p = g.path(t);
      int n = Generator.arg(t, g.pick(List.of(0, 1, 27, 28, 29, 32, 33, 100)));
      boolean defaults = Generator.arg(t, g.chance(30));
      return d -> Call.done(() -> d.name().setAcl(d.at(p), entries(n, defaults)));
    });
    add(1, "removeAclEntries", t -> {
      String p = g.path(t);
      int n = Generator.arg(t, g.pick(List.of(0, 28, 33)));
      return d -> Call.done(() -> d.name().removeAclEntries(d.at(p), entries(n, false)));
    });
    add(2, "setXAttr", t -> {
      String p = g.path(t);
      XAttr.Builder b = new XAttr.Builder().setNameSpace(g.pick(List.of(XAttr.NameSpace.USER, XAttr.NameSpace.TRUSTED)));
      b.setName(Generator.arg(t, g.pick(List.of("e", "\u00e9".repeat(127), "\u00e9".repeat(128), "n".repeat(255), "n".repeat(256), "a\nb", " ", "."))));
      b.setValue(new byte[Generator.arg(t, g.pick(List.of(0, 1, 16_000, 16_128, 16_129, 16_384, 16_385, 100_000)))]);
      EnumSet<XAttrSetFlag> flags = Generator.arg(t, g.chance(80) ? EnumSet.allOf(XAttrSetFlag.class) : EnumSet.noneOf(XAttrSetFlag.class));
      return d -> Call.done(() -> d.name().setXAttr(d.at(p), b.build(), flags));
    });
    add(1, "concat", t -> {
      String p = g.path(t);
      String from = g.path(t);
      int n = Generator.arg(t, g.pick(List.of(0, 2, 100)));
      return d -> Call.done(() -> d.name().concat(d.at(p), Collections.nCopies(n, d.at(from)).toArray(String[]::new)));
    });
  }

  private static List<AclEntry> entries(int n, boolean defaults) {
    List<String> all = new ArrayList<>();
    String scope = defaults ? "default:" : "";
    for (String each : List.of("user::rwx", "group::r-x", "other::r--").subList(0, n == 0 ? 0 : 3)) {
      all.add(scope + each);
    }
    for (int i = 0; i < n; i++) {
      all.add(scope + "user:u" + i + ":r-x");
    }
    return n == 0 ? List.of() : AclEntry.parseAclSpec(String.join(",", all), true);
  }

  private long block(StringBuilder text) {
    return Generator.arg(text, g.pick(List.of(1L, 1L << 40, -16L)));
  }

  private static ExtendedBlock of(Door d, long id) {
    return new ExtendedBlock(d.pool(), id, 0, 1001);
  }

  private void blocks() {
    List<String> holders = List.of("writer-1", "writer-2", "");
    add(1, "addBlock", t -> {
      String p = g.path(t);
      String holder = Generator.arg(t, g.pick(holders));
      long previous = block(t);
      long id = Generator.arg(t, g.chance(50) ? HdfsConstants.GRANDFATHER_INODE_ID : 7L);
      return d -> {
        var made = d.name().addBlock(d.at(p), holder, of(d, previous), null, id, null, null);
        return made.getLocations().length + " places";
      };
    });
    add(1, "abandonBlock", t -> {
      String p = g.path(t);
      String holder = Generator.arg(t, g.pick(holders));
      long which = block(t);
      return d -> Call.done(() -> d.name().abandonBlock(of(d, which), HdfsConstants.GRANDFATHER_INODE_ID, d.at(p), holder));
    });
    add(1, "getAdditionalDatanode", t -> {
      String p = g.path(t);
      String holder = Generator.arg(t, g.pick(holders));
      long which = block(t);
      int more = Generator.arg(t, g.pick(List.of(1, 2)));
      DatanodeInfo[] none = {};
      return d -> {
        var made = d.name().getAdditionalDatanode(d.at(p), 0, of(d, which), none, new String[0], none, more, holder);
        return made.getLocations().length + " places";
      };
    });
    add(1, "updateBlockForPipeline", t -> {
      String holder = Generator.arg(t, g.pick(holders));
      long which = block(t);
      return d -> Call.done(() -> d.name().updateBlockForPipeline(of(d, which), holder));
    });
    add(1, "renewLease", t -> {
      String holder = Generator.arg(t, g.pick(holders));
      return d -> Call.done(() -> d.name().renewLease(holder, null));
    });
  }

  private static String page(BatchedDirectoryListing page) throws Exception {
    StringBuilder out = new StringBuilder();
    for (HdfsPartialListing part : page.getListings()) {
      out.append(part.getParentIdx()).append(':');
      if (part.getException() != null) {
        out.append(part.getException().getClassName()).append(' ');
        out.append(part.getException().getMessage().split("\n")[0]);
      } else {
        part.getPartialListing().forEach(s -> out.append(Text.status(s)).append(' '));
      }
      out.append(';');
    }
    return out + " more " + page.hasMore();
  }

  private void listings() {
    add(4, "getBatchedListing", t -> {
      List<String> paths = new ArrayList<>();
      int n = g.pick(List.of(0, 1, 2, 3, 5, 50));
      for (int i = 0; i < n; i++) {
        paths.add(g.path(t));
      }
      boolean located = Generator.arg(t, g.chance(30));
      return d -> page(d.name().getBatchedListing(paths.stream().map(d::at).toArray(String[]::new), new byte[0], located));
    });
    add(2, "getListing", t -> {
      String p = g.path(t);
      String after = Generator.arg(t, g.pick(List.of("n".repeat(5000), "a\u0001", "a/b", "..", ".", "/")));
      return d -> Text.listing(d.name().getListing(d.at(p), after.getBytes(StandardCharsets.UTF_8), false));
    });
    add(1, "listCorruptFileBlocks", t -> {
      String p = g.path(t);
      String cookie = Generator.arg(t, g.pick(Arrays.asList(null, "0", "-1", "x", "", "9223372036854775807")));
      return d -> Arrays.toString(d.name().listCorruptFileBlocks(d.at(p), cookie).getFiles());
    });
    add(2, "listOpenFiles", t -> {
      String p = g.path(t);
      long after = end(t);
      OpenFilesType type = Generator.arg(t, g.pick(List.of(OpenFilesType.ALL_OPEN_FILES, OpenFilesType.BLOCKING_DECOMMISSION)));
      return d -> "" + d.name().listOpenFiles(after, EnumSet.of(type), d.at(p)).size();
    });
    add(4, "getSnapshotDiffReportListing", t -> {
      String p = g.someOf(t);
      String from = Generator.arg(t, g.pick(List.of("s0", "s1", "s2", "")));
      String to = Generator.arg(t, g.pick(List.of("s0", "s1", "s2", "")));
      String start = Generator.arg(t, g.chance(70) ? "" : g.pick(List.of("a", "b/c", "zz", "/")));
      int index = Generator.arg(t, g.chance(70) ? -1 : g.pick(List.of(0, 1, Integer.MAX_VALUE, Integer.MIN_VALUE)));
      return d -> {
        SnapshotDiffReportListing found =
            d.name().getSnapshotDiffReportListing(d.at(p), from, to, start.getBytes(StandardCharsets.UTF_8), index);
        return lines(found.getModifyList()) + lines(found.getCreateList()) + lines(found.getDeleteList()) + found.getIsFromEarlier();
      };
    });
    add(1, "getSnapshottableDirListing", t -> d -> {
      List<String> paths = new ArrayList<>();
      var found = d.name().getSnapshottableDirListing();
      for (int i = 0; found != null && i < found.length; i++) {
        paths.add(found[i].getFullPath().toUri().getPath() + " " + found[i].getSnapshotNumber());
      }
      return paths.toString();
    });
  }

  private static String lines(List<DiffReportListingEntry> entries) {
    List<String> lines = new ArrayList<>();
    for (DiffReportListingEntry e : entries) {
      lines.add(path(e.getSourcePath()) + (e.getTargetPath() == null ? "" : " to " + path(e.getTargetPath())) + (e.isReference() ? " (reference)" : ""));
    }
    // Those of one folder come in the order of a hash map.
    lines.sort(null);
    return lines + " ";
  }

  private static String path(byte[][] names) {
    List<String> parts = new ArrayList<>();
    for (byte[] name : names) {
      parts.add(new String(name, StandardCharsets.UTF_8));
    }
    return String.join("/", parts);
  }

  /** Nothing here changes what other calls see. */
  private void admin() {
    add(1, "getStoragePolicies", t -> d -> Arrays.toString(d.name().getStoragePolicies()));
    add(1, "getErasureCodingPolicies", t -> d -> {
      List<String> lines = new ArrayList<>();
      for (ErasureCodingPolicyInfo info : d.name().getErasureCodingPolicies()) {
        String name = info.getPolicy().getName();
        if (!name.equals("RS-6-3-64k") && !name.endsWith("-contiguous")) {
          lines.add(info.toString());
        }
      }
      lines.sort(null);
      return lines.toString();
    });
    for (String name : List.of("removeErasureCodingPolicy", "disableErasureCodingPolicy", "enableErasureCodingPolicy")) {
      add(1, name, t -> {
        String policy = Generator.arg(t, g.pick(List.of("none", "", "RS", "rs-6-3-1024k", "\u00e9")));
        return d -> Call.done(() -> {
          switch (name.charAt(0)) {
            case 'r' -> d.name().removeErasureCodingPolicy(policy);
            case 'd' -> d.name().disableErasureCodingPolicy(policy);
            default -> d.name().enableErasureCodingPolicy(policy);
          }
        });
      });
    }
    add(1, "getECTopologyResultForPolicies", t -> {
      List<String> policies = Generator.arg(t, g.pick(List.of(List.of(), List.of("RS-6-3-1024k"), List.of("XOR-2-1-1024k", "none"), List.of(""))));
      return d -> {
        var told = d.name().getECTopologyResultForPolicies(policies.toArray(String[]::new));
        return told.isSupported() + " " + told.getResultMessage();
      };
    });
    add(1, "getEZForPath", t -> {
      String p = g.path(t);
      return d -> "" + d.name().getEZForPath(d.at(p));
    });
    add(1, "listEncryptionZones", t -> {
      long after = end(t);
      return d -> "" + d.name().listEncryptionZones(after).size();
    });
    add(1, "listReencryptionStatus", t -> {
      long after = end(t);
      return d -> "" + d.name().listReencryptionStatus(after).size();
    });
    add(1, "createEncryptionZone", t -> {
      String p = g.path(t);
      String key = Generator.arg(t, g.pick(List.of("k", "")));
      return d -> Call.done(() -> d.name().createEncryptionZone(d.at(p), key));
    });
    add(1, "reencryptEncryptionZone", t -> {
      String p = g.path(t);
      ReencryptAction action = Generator.arg(t, g.pick(List.of(ReencryptAction.START, ReencryptAction.CANCEL)));
      return d -> Call.done(() -> d.name().reencryptEncryptionZone(d.at(p), action));
    });
    add(3, "satisfyStoragePolicy", t -> {
      String p = g.path(t);
      return d ->
          Call.done(() -> d.name().satisfyStoragePolicy(d.at(p)))
              + Text.attributes(d.name().listXAttrs(d.at(p)));
    });
    add(1, "getDelegationToken", t -> {
      String renewer = Generator.arg(t, g.pick(List.of("alice", "")));
      return d -> "" + d.name().getDelegationToken(new org.apache.hadoop.io.Text(renewer));
    });
    add(1, "upgradeStatus", t -> d -> "" + d.name().upgradeStatus());
    add(1, "rollingUpgrade", t -> {
      // In safe mode one would begin, and last.
      List<RollingUpgradeAction> actions =
          g.draws("safe-mode")
              ? List.of(RollingUpgradeAction.QUERY, RollingUpgradeAction.FINALIZE)
              : Arrays.asList(RollingUpgradeAction.values());
      RollingUpgradeAction action = Generator.arg(t, g.pick(actions));
      return d -> "" + d.name().rollingUpgrade(action);
    });
    add(1, "setSafeMode", t -> d -> "" + d.name().setSafeMode(SafeModeAction.SAFEMODE_GET, false));
    // In safe mode it tells whether it was needed, see docs/deviations.md.
    if (!g.draws("safe-mode")) {
      add(1, "saveNamespace", t -> {
        long window = end(t);
        long gap = end(t);
        return d -> "" + d.name().saveNamespace(window, gap);
      });
    }
    add(1, "rollEdits", t -> d -> "" + (d.name().rollEdits() > 0));
    add(1, "restoreFailedStorage", t -> {
      String what = Generator.arg(t, g.pick(List.of("check", "true", "false", "x", "")));
      return d -> "" + d.name().restoreFailedStorage(what);
    });
    add(1, "refreshNodes", t -> d -> Call.done(() -> d.name().refreshNodes()));
    add(1, "finalizeUpgrade", t -> d -> Call.done(() -> d.name().finalizeUpgrade()));
    add(1, "setBalancerBandwidth", t -> {
      long bandwidth = Generator.arg(t, g.pick(List.of(1L << 40, (1L << 40) + 1, Long.MAX_VALUE)));
      return d -> Call.done(() -> d.name().setBalancerBandwidth(bandwidth));
    });
    add(1, "getSlowDatanodeReport", t -> d -> "" + d.name().getSlowDatanodeReport().length);
    add(1, "getCurrentEditLogTxid", t -> d -> "" + (d.name().getCurrentEditLogTxid() > 0));
    add(1, "msync", t -> d -> Call.done(() -> d.name().msync()));
  }
}
