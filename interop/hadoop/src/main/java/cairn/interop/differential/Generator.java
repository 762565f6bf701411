package cairn.interop.differential;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.EnumSetWritable;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/** Draws calls from a seed: short names that meet often, several users, good and bad arguments. */
final class Generator {
  /** The users beside the superuser; {@code carol} is in no group that the others are in. */
  static final List<String> USERS = List.of("alice", "bob", "carol");

  interface Maker {
    Call.Body make(StringBuilder text);
  }

  private record Kind(String family, int weight, String name, Maker maker) {}

  private static final List<String> NAMES = List.of("a", "b", "c", "d", "e");
  private static final List<String> POLICIES = List.of("RS-3-2-1024k", "XOR-2-1-1024k");
  private static final List<String> STORAGE = List.of("HOT", "WARM", "COLD", "ALL_SSD", "ONE_SSD", "LAZY_PERSIST");
  private static final long BLOCK = 1 << 20;

  private final Random random;
  private final Set<String> families;
  private final List<Kind> kinds = new ArrayList<>();
  private final Deque<Call> first = new ArrayDeque<>();
  private int total;

  /** Calls of {@code families} only; {@code raw} stands for paths below {@code /.reserved/raw}. */
  Generator(long seed, Set<String> families) {
    random = new Random(seed);
    this.families = families;
    tree();
    files();
    attributes();
    erasureCoding();
    quotas();
    acls();
    snapshots();
    listings();
    CacheCalls.addTo(this);
    EdgeCalls.addTo(this);
    EncryptionCalls.addTo(this);
    add("restarts", 2, "restart", t -> d -> Call.done(d.restart()));
    if (families.contains("encryption")) {
      first.addAll(EncryptionCalls.first());
    }
    kinds.removeIf(k -> !families.contains(k.family()));
    for (Kind k : kinds) {
      total += k.weight();
    }
  }

  Call next() {
    if (!first.isEmpty()) {
      return first.removeFirst();
    }
    int at = random.nextInt(total);
    for (Kind k : kinds) {
      at -= k.weight();
      if (at < 0) {
        // The superuser makes a third of the calls: it gets further.
        String user = random.nextInt(3) == 0 || isForSuperuser(k) ? "superuser" : pick(USERS);
        StringBuilder text = new StringBuilder(k.name());
        Call.Body body = k.maker().make(text);
        return new Call(user, k.family(), text.toString(), body);
      }
    }
    throw new IllegalStateException("no family of calls is left");
  }

  /** Others are refused zones. */
  private boolean isForSuperuser(Kind k) {
    return k.family().equals("encryption") && (k.name().equals("rollKey") || chance(70));
  }

  void add(String family, int weight, String name, Maker maker) {
    kinds.add(new Kind(family, weight, name, maker));
  }

  <T> T pick(List<T> of) {
    return of.get(random.nextInt(of.size()));
  }

  boolean chance(int percent) {
    return random.nextInt(100) < percent;
  }

  /** Notes an argument in the text of the call. */
  static <T> T arg(StringBuilder text, T value) {
    text.append(' ').append(value);
    return value;
  }

  String plain() {
    StringBuilder path = new StringBuilder("~");
    for (int i = 1 + random.nextInt(3); i > 0; i--) {
      path.append('/').append(pick(NAMES));
    }
    return path.toString();
  }

  String path(StringBuilder text) {
    int die = random.nextInt(100);
    String p = plain();
    if (families.contains("raw") && chance(50)) {
      return arg(text, reserved(p));
    }
    if (die < 3) {
      p = "~";
    } else if (die < 5) {
      p = odd(p);
    }
    return arg(text, p);
  }

  /** A path that is not empty: Hadoop cuts one for snapshots at a slash that is not there. */
  String someOf(StringBuilder text) {
    String p = path(new StringBuilder());
    return arg(text, p.isEmpty() ? "~" : p);
  }

  /** A path in the corner of reserved names: mostly one by which {@code p}, or what is in it, is reached. */
  private String reserved(String p) {
    return switch (random.nextInt(20)) {
      case 0, 1, 2, 3, 4, 5, 6, 7, 8 -> "/.reserved/raw" + p;
      case 9, 10, 11, 12 -> "/.reserved/.inodes/[" + p + "]";
      case 13, 14, 15 -> "/.reserved/.inodes/[" + p + "]/" + pick(NAMES);
      case 16 -> "/.reserved/.inodes/[" + p + "]/" + pick(List.of("..", "../a", ".", ""));
      case 17 -> "/.reserved/raw/.reserved/" + pick(List.of("raw" + p, ".inodes/[" + p + "]", "x", ""));
      default ->
          pick(
              List.of(
                  "/.reserved",
                  "/.reserved/",
                  "/.reserved/raw",
                  "/.reserved/raw/",
                  "/.reserved/raw/.reserved",
                  "/.reserved/.inodes",
                  "/.reserved/.inodes/",
                  "/.reserved/.inodes/x",
                  "/.reserved/.inodes/-1",
                  "/.reserved/.inodes/0",
                  "/.reserved/other",
                  "/.reserved/other/a",
                  "/.reserved/rawer/a",
                  "/.reserved//raw" + p));
    };
  }

  private String odd(String p) {
    if (families.contains("snapshots") && chance(15)) {
      return p + "/.snapshot/s0/a";
    }
    return switch (random.nextInt(8)) {
      case 0 -> "";
      case 1 -> "a/b";
      case 2 -> p + "/";
      case 3 -> p + "//x";
      case 4 -> p + "/../x";
      case 5 -> p + "/./x";
      case 6 -> p + "/" + "n".repeat(256);
      default -> p + "/x:y";
    };
  }

  private FsPermission permission(StringBuilder text) {
    List<Integer> modes = List.of(0777, 0755, 0700, 0644, 0750, 01777, 0, 0111);
    return arg(text, FsPermission.createImmutable((short) (int) pick(modes)));
  }

  private String owner(StringBuilder text) {
    return arg(text, chance(20) ? null : pick(List.of("alice", "bob", "carol", "root", "nobody", "")));
  }

  private void tree() {
    add("tree", 16, "mkdirs", t -> {
      String p = path(t);
      FsPermission mode = permission(t);
      boolean parents = arg(t, chance(80));
      return d -> "" + d.name().mkdirs(d.at(p), mode, parents);
    });
    add("tree", 5, "delete", t -> {
      String p = path(t);
      boolean recursive = arg(t, chance(50));
      return d -> "" + d.name().delete(d.at(p), recursive);
    });
    add("tree", 7, "rename", t -> {
      String from = path(t);
      String to = path(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    add("tree", 7, "rename2", t -> {
      String from = path(t);
      String to = path(t);
      Options.Rename option =
          arg(t, pick(List.of(Options.Rename.NONE, Options.Rename.OVERWRITE, Options.Rename.TO_TRASH)));
      return d -> {
        d.name().rename2(d.at(from), d.at(to), option);
        return "done";
      };
    });
    add("tree", 4, "setPermission", t -> {
      String p = path(t);
      FsPermission mode = permission(t);
      return d -> {
        d.name().setPermission(d.at(p), mode);
        return "done";
      };
    });
    add("tree", 4, "setOwner", t -> {
      String p = path(t);
      String user = owner(t);
      String group = owner(t);
      return d -> {
        d.name().setOwner(d.at(p), user, group);
        return "done";
      };
    });
    add("tree", 4, "setTimes", t -> {
      String p = path(t);
      long m = arg(t, chance(20) ? -1L : (long) random.nextInt(1_000_000));
      long a = arg(t, chance(20) ? -1L : (long) random.nextInt(1_000_000));
      return d -> {
        d.name().setTimes(d.at(p), m, a);
        return "done";
      };
    });
    add("tree", 3, "checkAccess", t -> {
      String p = path(t);
      FsAction action = arg(t, pick(Arrays.asList(FsAction.values())));
      return d -> {
        d.name().checkAccess(d.at(p), action);
        return "done";
      };
    });
    add("tree", 1, "createSymlink", t -> {
      String to = path(t);
      String link = path(t);
      return d -> {
        d.name().createSymlink(d.at(to), d.at(link), FsPermission.getDirDefault(), false);
        return "done";
      };
    });
    add("tree", 1, "getLinkTarget", t -> {
      String p = path(t);
      return d -> d.name().getLinkTarget(d.at(p));
    });
  }

  private String holder(StringBuilder text) {
    return arg(text, pick(List.of("writer-1", "writer-2")));
  }

  private void files() {
    add("files", 6, "create", t -> {
      String p = path(t);
      FsPermission mode = permission(t);
      String holder = holder(t);
      EnumSet<CreateFlag> flags =
          arg(
              t,
              pick(
                  List.of(
                      EnumSet.of(CreateFlag.CREATE),
                      EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE),
                      EnumSet.of(CreateFlag.OVERWRITE),
                      EnumSet.of(CreateFlag.CREATE, CreateFlag.SHOULD_REPLICATE))));
      boolean parents = arg(t, chance(70));
      short replication = arg(t, pick(List.of((short) 1, (short) 2, (short) 3, (short) 0, (short) 600)));
      long drawn = pick(List.of(BLOCK, 2 * BLOCK, 1024L, 100L, 0L, -1L));
      // Over another file Hadoop stripes blocks that are smaller than a cell.
      long block = arg(t, drawn == 1024 && flags.contains(CreateFlag.OVERWRITE) ? BLOCK : drawn);
      return d -> {
        var status =
            d.name()
                .create(
                    d.at(p),
                    mode,
                    holder,
                    new EnumSetWritable<>(flags),
                    parents,
                    replication,
                    block,
                    CryptoProtocolVersion.supported(),
                    null,
                    null);
        d.ids().put(d.at(p), status.getFileId());
        return Text.status(status);
      };
    });
    add("files", 6, "complete", t -> {
      String p = path(t);
      String holder = holder(t);
      return d -> "" + d.name().complete(d.at(p), holder, null, d.ids().getOrDefault(d.at(p), 0L));
    });
    add("files", 2, "fsync", t -> {
      String p = path(t);
      String holder = holder(t);
      return d -> {
        d.name().fsync(d.at(p), d.ids().getOrDefault(d.at(p), 0L), holder, -1);
        return "done";
      };
    });
    add("files", 1, "recoverLease", t -> {
      String p = path(t);
      String holder = holder(t);
      return d -> "" + d.name().recoverLease(d.at(p), holder);
    });
    add("files", 8, "write", t -> {
      String p = path(t);
      boolean overwrite = arg(t, chance(50));
      int length = arg(t, pick(List.of(0, 1, 1000, 100_000, (int) BLOCK, (int) BLOCK * 3 / 2)));
      short replication = arg(t, pick(List.of((short) 1, (short) 2, (short) 3)));
      return d -> {
        return filled(
            d.files().create(new org.apache.hadoop.fs.Path(d.at(p)), overwrite, 4096, replication, BLOCK), length);
      };
    });
    add("files", 3, "append", t -> {
      String p = path(t);
      int length = arg(t, pick(List.of(0, 1, 70_000)));
      EnumSet<CreateFlag> flags =
          arg(
              t,
              pick(
                  List.of(EnumSet.of(CreateFlag.APPEND), EnumSet.of(CreateFlag.APPEND, CreateFlag.NEW_BLOCK))));
      return d -> {
        return filled(d.files().append(new org.apache.hadoop.fs.Path(d.at(p)), flags, 4096, null), length);
      };
    });
    add("files", 3, "truncate", t -> {
      String p = path(t);
      long length = arg(t, pick(List.of(0L, 1L, 500L, 1000L, BLOCK, BLOCK + 1, -1L)));
      String holder = holder(t);
      return d -> {
        boolean done = d.name().truncate(d.at(p), length, holder);
        // Inside a block it is done when the DataNodes are.
        for (int i = 0; !done && i < 600 && !d.name().isFileClosed(d.at(p)); i++) {
          Thread.sleep(50);
        }
        return "" + done;
      };
    });
    add("files", 3, "concat", t -> {
      String p = path(t);
      int n = random.nextInt(4);
      String[] sources = new String[n];
      for (int i = 0; i < n; i++) {
        sources[i] = path(t);
      }
      return d -> {
        d.name().concat(d.at(p), Arrays.stream(sources).map(d::at).toArray(String[]::new));
        return "done";
      };
    });
    add("files", 3, "setReplication", t -> {
      String p = path(t);
      short n = arg(t, pick(List.of((short) 1, (short) 2, (short) 3, (short) 0, (short) 600, (short) -1)));
      return d -> "" + d.name().setReplication(d.at(p), n);
    });
    add("files", 3, "getBlockLocations", t -> {
      String p = path(t);
      long offset = arg(t, pick(List.of(0L, 500L, BLOCK, -1L)));
      long length = arg(t, pick(List.of(1L, 10 * BLOCK, 0L, -1L)));
      return d -> Text.blocks(d.name().getBlockLocations(d.at(p), offset, length));
    });
    add("files", 2, "isFileClosed", t -> {
      String p = path(t);
      return d -> "" + d.name().isFileClosed(d.at(p));
    });
    add("files", 1, "getPreferredBlockSize", t -> {
      String p = path(t);
      return d -> "" + d.name().getPreferredBlockSize(d.at(p));
    });
  }

  /** Writes {@code length} bytes. A stream that has failed throws the same exception again as it is closed. */
  private static String filled(java.io.OutputStream out, int length) throws java.io.IOException {
    try {
      out.write(new byte[length]);
      out.close();
      return "done";
    } finally {
      org.apache.hadoop.io.IOUtils.closeStream(out);
    }
  }

  private XAttr attribute(StringBuilder text) {
    XAttr.Builder b = new XAttr.Builder();
    b.setNameSpace(arg(text, pick(Arrays.asList(XAttr.NameSpace.values()))));
    b.setName(
        arg(text, pick(List.of("x", "y", "z", "", "long".repeat(80), "hdfs.unreadable.by.superuser"))));
    if (chance(80)) {
      b.setValue(arg(text, pick(List.of("1", "22", "v".repeat(16_400)))).getBytes());
    }
    return b.build();
  }

  private void attributes() {
    add("attributes", 4, "setXAttr", t -> {
      String p = path(t);
      XAttr a = attribute(t);
      EnumSet<XAttrSetFlag> flags =
          arg(
              t,
              pick(
                  List.of(
                      EnumSet.of(XAttrSetFlag.CREATE),
                      EnumSet.of(XAttrSetFlag.REPLACE),
                      EnumSet.of(XAttrSetFlag.CREATE, XAttrSetFlag.REPLACE))));
      return d -> {
        d.name().setXAttr(d.at(p), a, flags);
        return "done";
      };
    });
    add("attributes", 2, "getXAttrs", t -> {
      String p = path(t);
      List<XAttr> of = chance(50) ? null : List.of(attribute(t));
      return d -> Text.attributes(d.name().getXAttrs(d.at(p), of));
    });
    add("attributes", 2, "listXAttrs", t -> {
      String p = path(t);
      return d -> Text.attributes(d.name().listXAttrs(d.at(p)));
    });
    add("attributes", 2, "removeXAttr", t -> {
      String p = path(t);
      XAttr a = attribute(t);
      return d -> {
        d.name().removeXAttr(d.at(p), a);
        return "done";
      };
    });
    add("attributes", 2, "setStoragePolicy", t -> {
      String p = path(t);
      String policy = arg(t, chance(15) ? "NONE" : pick(STORAGE));
      return d -> {
        d.name().setStoragePolicy(d.at(p), policy);
        return "done";
      };
    });
    add("attributes", 1, "unsetStoragePolicy", t -> {
      String p = path(t);
      return d -> {
        d.name().unsetStoragePolicy(d.at(p));
        return "done";
      };
    });
    add("attributes", 2, "getStoragePolicy", t -> {
      String p = path(t);
      return d -> d.name().getStoragePolicy(d.at(p)).getName();
    });
  }

  private void erasureCoding() {
    add("ec", 4, "setErasureCodingPolicy", t -> {
      String p = path(t);
      List<String> odd = Arrays.asList("RS-6-3-1024k", "nothing", "replication", null, "");
      String policy = arg(t, chance(20) ? pick(odd) : pick(POLICIES));
      return d -> {
        d.name().setErasureCodingPolicy(d.at(p), policy);
        return "done";
      };
    });
    add("ec", 2, "unsetErasureCodingPolicy", t -> {
      String p = path(t);
      return d -> {
        d.name().unsetErasureCodingPolicy(d.at(p));
        return "done";
      };
    });
    add("ec", 3, "getErasureCodingPolicy", t -> {
      String p = path(t);
      return d -> {
        var policy = d.name().getErasureCodingPolicy(d.at(p));
        return policy == null ? "none" : policy.getName();
      };
    });
  }

  private void quotas() {
    boolean types = families.contains("quota-types");
    add("quotas", 4, "setQuota", t -> {
      String p = path(t);
      List<Long> odd = List.of(0L, -2L, Long.MIN_VALUE);
      long reset = HdfsConstants.QUOTA_RESET;
      long keep = HdfsConstants.QUOTA_DONT_SET;
      long names = arg(t, pick(List.of(1L, 3L, 5L, 10L, reset, keep, pick(odd))));
      long space = arg(t, pick(List.of(BLOCK, 5 * BLOCK, 50 * BLOCK, reset, keep, pick(odd))));
      return d -> {
        d.name().setQuota(d.at(p), names, space, null);
        return "done";
      };
    });
    add("quota-types", 3, "setQuotaByType", t -> {
      String p = path(t);
      StorageType type = arg(t, pick(StorageType.getTypesSupportingQuota()));
      long space = arg(t, pick(List.of(BLOCK, 5 * BLOCK, 50 * BLOCK, HdfsConstants.QUOTA_RESET)));
      return d -> {
        d.name().setQuota(d.at(p), HdfsConstants.QUOTA_DONT_SET, space, type);
        return "done";
      };
    });
    add("quotas", 3, "getQuotaUsage", t -> {
      String p = path(t);
      return d -> {
        var u = d.name().getQuotaUsage(d.at(p));
        return Text.usage(u) + (types ? Text.types(u) : "");
      };
    });
    add("quotas", 3, "getContentSummary", t -> {
      String p = path(t);
      return d -> {
        var s = d.name().getContentSummary(d.at(p));
        return Text.summary(s) + (types ? Text.types(s) : "");
      };
    });
  }

  private List<AclEntry> entries(StringBuilder text, boolean permissions) {
    List<String> all =
        permissions
            ? List.of(
                "user::rwx",
                "user:alice:r-x",
                "user:bob:rwx",
                "group::r--",
                "group:staff:rw-",
                "mask::r-x",
                "other::---",
                "other::r-x",
                "default:user::rwx",
                "default:user:carol:rwx",
                "default:group::r-x",
                "default:mask::rwx",
                "default:other::r--")
            : List.of("user:alice", "user:bob", "group:staff", "mask:", "default:user:carol", "user:", "default:mask:");
    List<String> chosen = new ArrayList<>();
    for (int i = random.nextInt(6); i >= 0; i--) {
      chosen.add(pick(all));
    }
    return AclEntry.parseAclSpec(arg(text, String.join(",", chosen)), permissions);
  }

  private void acls() {
    add("acls", 3, "modifyAclEntries", t -> {
      String p = path(t);
      List<AclEntry> e = entries(t, true);
      return d -> {
        d.name().modifyAclEntries(d.at(p), e);
        return "done";
      };
    });
    add("acls", 3, "setAcl", t -> {
      String p = path(t);
      List<AclEntry> e = entries(t, true);
      return d -> {
        d.name().setAcl(d.at(p), e);
        return "done";
      };
    });
    add("acls", 2, "removeAclEntries", t -> {
      String p = path(t);
      List<AclEntry> e = entries(t, false);
      return d -> {
        d.name().removeAclEntries(d.at(p), e);
        return "done";
      };
    });
    add("acls", 1, "removeDefaultAcl", t -> {
      String p = path(t);
      return d -> {
        d.name().removeDefaultAcl(d.at(p));
        return "done";
      };
    });
    add("acls", 1, "removeAcl", t -> {
      String p = path(t);
      return d -> {
        d.name().removeAcl(d.at(p));
        return "done";
      };
    });
    add("acls", 4, "getAclStatus", t -> {
      String p = path(t);
      return d -> d.name().getAclStatus(d.at(p)).toString();
    });
  }

  private String snapshot(StringBuilder text) {
    return arg(text, chance(10) ? "a/b" : pick(List.of("s0", "s1", "s2")));
  }

  private void snapshots() {
    add("snapshots", 2, "allowSnapshot", t -> {
      String p = path(t);
      return d -> {
        d.name().allowSnapshot(d.at(p));
        return "done";
      };
    });
    add("snapshots", 1, "disallowSnapshot", t -> {
      String p = path(t);
      return d -> {
        d.name().disallowSnapshot(d.at(p));
        return "done";
      };
    });
    add("snapshots", 4, "createSnapshot", t -> {
      String p = someOf(t);
      String s = snapshot(t);
      return d -> d.name().createSnapshot(d.at(p), s);
    });
    add("snapshots", 2, "deleteSnapshot", t -> {
      String p = someOf(t);
      String s = snapshot(t);
      return d -> {
        d.name().deleteSnapshot(d.at(p), s);
        return "done";
      };
    });
    add("snapshots", 1, "renameSnapshot", t -> {
      String p = someOf(t);
      String from = snapshot(t);
      String to = snapshot(t);
      return d -> {
        d.name().renameSnapshot(d.at(p), from, to);
        return "done";
      };
    });
    add("snapshots", 3, "getSnapshotDiffReport", t -> {
      String p = someOf(t);
      String from = snapshot(t);
      String to = chance(30) ? arg(t, "") : snapshot(t);
      return d -> Text.diff(d.name().getSnapshotDiffReport(d.at(p), from, to));
    });
    add("snapshots", 2, "getSnapshotListing", t -> {
      String p = path(t);
      return d -> "" + d.name().getSnapshotListing(d.at(p)).length;
    });
    add("snapshots", 4, "getListing", t -> {
      String p = arg(t, plain() + "/.snapshot/" + pick(List.of("", "s0", "s1", "s2")) + pick(List.of("", "/a", "/b/c")));
      return d -> Text.listing(d.name().getListing(d.at(p), new byte[0], false));
    });
    add("snapshots", 3, "getBlockLocations", t -> {
      String p = arg(t, plain() + "/.snapshot/" + pick(List.of("s0", "s1", "s2")) + pick(List.of("/a", "/b/c")));
      return d -> Text.blocks(d.name().getBlockLocations(d.at(p), 0, 10 * BLOCK));
    });
  }

  private void listings() {
    add("tree", 10, "getFileInfo", t -> {
      String p = path(t);
      return d -> Text.status(d.name().getFileInfo(d.at(p)));
    });
    add("tree", 2, "getFileLinkInfo", t -> {
      String p = path(t);
      return d -> Text.status(d.name().getFileLinkInfo(d.at(p)));
    });
    add("tree", 2, "getLocatedFileInfo", t -> {
      String p = path(t);
      return d -> Text.status(d.name().getLocatedFileInfo(d.at(p), false));
    });
    add("tree", 6, "getListing", t -> {
      String p = path(t);
      byte[] after = arg(t, pick(List.of("", "a", "bb"))).getBytes();
      boolean located = arg(t, chance(30));
      return d -> Text.listing(d.name().getListing(d.at(p), after, located));
    });
    add("tree", 1, "getEnclosingRoot", t -> {
      String p = path(t);
      return d -> "" + d.name().getEnclosingRoot(d.at(p));
    });
    add("tree", 1, "listOpenFiles", t -> {
      String p = path(t);
      return d -> {
        List<String> paths = new ArrayList<>();
        var open =
            d.name()
                .listOpenFiles(
                    0,
                    EnumSet.of(org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType.ALL_OPEN_FILES),
                    d.at(p));
        for (int i = 0; i < open.size(); i++) {
          paths.add(open.get(i).getFilePath() + " " + open.get(i).getClientName());
        }
        return paths.toString();
      };
    });
  }
}
