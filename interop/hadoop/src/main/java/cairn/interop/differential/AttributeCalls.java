package cairn.interop.differential;

import static cairn.interop.differential.Generator.BLOCK;
import static cairn.interop.differential.Generator.arg;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/** Calls on what is kept of a path beside its mode: extended attributes, policies, quotas and access lists. */
final class AttributeCalls {
  private static final List<String> POLICIES = List.of("RS-3-2-1024k", "XOR-2-1-1024k");
  private static final List<String> STORAGE = List.of("HOT", "WARM", "COLD", "ALL_SSD", "ONE_SSD", "LAZY_PERSIST");

  /** Limits of bytes by type of storage that are never reached: Hadoop counts erasure coded files at some times and not at others. */
  static final List<Long> FAR_LIMITS = List.of(1L << 40, 1L << 50, Long.MAX_VALUE - 1, HdfsConstants.QUOTA_RESET);

  private final Generator g;

  private AttributeCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    AttributeCalls calls = new AttributeCalls(g);
    calls.attributes();
    calls.erasureCoding();
    calls.quotas();
    calls.acls();
  }

  private XAttr attribute(StringBuilder text) {
    XAttr.Builder b = new XAttr.Builder();
    b.setNameSpace(arg(text, g.pick(Arrays.asList(XAttr.NameSpace.values()))));
    b.setName(
        arg(text, g.pick(List.of("x", "y", "z", "", "long".repeat(80), "hdfs.unreadable.by.superuser"))));
    if (g.chance(80)) {
      b.setValue(arg(text, g.pick(List.of("1", "22", "v".repeat(16_400)))).getBytes());
    }
    return b.build();
  }

  private void attributes() {
    g.add("attributes", 4, "setXAttr", t -> {
      String p = g.path(t);
      XAttr a = attribute(t);
      EnumSet<XAttrSetFlag> flags =
          arg(
              t,
              g.pick(
                  List.of(
                      EnumSet.of(XAttrSetFlag.CREATE),
                      EnumSet.of(XAttrSetFlag.REPLACE),
                      EnumSet.of(XAttrSetFlag.CREATE, XAttrSetFlag.REPLACE))));
      return d -> {
        d.name().setXAttr(d.at(p), a, flags);
        return "done";
      };
    });
    g.add("attributes", 2, "getXAttrs", t -> {
      String p = g.path(t);
      List<XAttr> of = g.chance(50) ? null : List.of(attribute(t));
      return d -> Text.attributes(d.name().getXAttrs(d.at(p), of));
    });
    g.add("attributes", 2, "listXAttrs", t -> {
      String p = g.path(t);
      return d -> Text.attributes(d.name().listXAttrs(d.at(p)));
    });
    g.add("attributes", 2, "removeXAttr", t -> {
      String p = g.path(t);
      XAttr a = attribute(t);
      return d -> {
        d.name().removeXAttr(d.at(p), a);
        return "done";
      };
    });
    g.add("attributes", 2, "setStoragePolicy", t -> {
      String p = g.path(t);
      String policy = arg(t, g.chance(15) ? "NONE" : g.pick(STORAGE));
      return d -> {
        d.name().setStoragePolicy(d.at(p), policy);
        return "done";
      };
    });
    g.add("attributes", 1, "unsetStoragePolicy", t -> {
      String p = g.path(t);
      return d -> {
        d.name().unsetStoragePolicy(d.at(p));
        return "done";
      };
    });
    g.add("attributes", 2, "getStoragePolicy", t -> {
      String p = g.path(t);
      return d -> d.name().getStoragePolicy(d.at(p)).getName();
    });
  }

  private void erasureCoding() {
    g.add("ec", 4, "setErasureCodingPolicy", t -> {
      String p = g.path(t);
      List<String> odd = Arrays.asList("RS-6-3-1024k", "nothing", "replication", null, "");
      String policy = arg(t, g.chance(20) ? g.pick(odd) : g.pick(POLICIES));
      return d -> {
        d.name().setErasureCodingPolicy(d.at(p), policy);
        return "done";
      };
    });
    g.add("ec", 2, "unsetErasureCodingPolicy", t -> {
      String p = g.path(t);
      return d -> {
        d.name().unsetErasureCodingPolicy(d.at(p));
        return "done";
      };
    });
    g.add("ec", 3, "getErasureCodingPolicy", t -> {
      String p = g.path(t);
      return d -> {
        var policy = d.name().getErasureCodingPolicy(d.at(p));
        return policy == null ? "none" : policy.getName();
      };
    });
  }

  private void quotas() {
    boolean types = g.draws("quota-types");
    boolean isCoded = g.draws("ec");
    g.add("quotas", 4, "setQuota", t -> {
      String p = g.path(t);
      List<Long> odd = List.of(0L, -2L, Long.MIN_VALUE);
      long reset = HdfsConstants.QUOTA_RESET;
      long keep = HdfsConstants.QUOTA_DONT_SET;
      long names = arg(t, g.pick(List.of(1L, 3L, 5L, 10L, reset, keep, g.pick(odd))));
      long space = arg(t, g.pick(List.of(BLOCK, 5 * BLOCK, 50 * BLOCK, reset, keep, g.pick(odd))));
      return d -> {
        d.name().setQuota(d.at(p), names, space, null);
        return "done";
      };
    });
    g.add("quota-types", 3, "setQuotaByType", t -> {
      String p = g.path(t);
      StorageType type = arg(t, g.pick(StorageType.getTypesSupportingQuota()));
      long space = arg(t, g.pick(isCoded ? FAR_LIMITS : List.of(BLOCK, 5 * BLOCK, 50 * BLOCK, HdfsConstants.QUOTA_RESET)));
      return d -> {
        d.name().setQuota(d.at(p), HdfsConstants.QUOTA_DONT_SET, space, type);
        return "done";
      };
    });
    g.add("quotas", 3, "getQuotaUsage", t -> {
      String p = g.path(t);
      return d -> {
        var u = d.name().getQuotaUsage(d.at(p));
        return Text.usage(u) + (types ? Text.types(u, !isCoded) : "");
      };
    });
    g.add("quotas", 3, "getContentSummary", t -> {
      String p = g.path(t);
      return d -> {
        var s = d.name().getContentSummary(d.at(p));
        return Text.summary(s) + (types ? Text.types(s, !isCoded) : "");
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
    for (int i = g.below(6); i >= 0; i--) {
      chosen.add(g.pick(all));
    }
    return AclEntry.parseAclSpec(arg(text, String.join(",", chosen)), permissions);
  }

  private void acls() {
    g.add("acls", 3, "modifyAclEntries", t -> {
      String p = g.path(t);
      List<AclEntry> e = entries(t, true);
      return d -> {
        d.name().modifyAclEntries(d.at(p), e);
        return "done";
      };
    });
    g.add("acls", 3, "setAcl", t -> {
      String p = g.path(t);
      List<AclEntry> e = entries(t, true);
      return d -> {
        d.name().setAcl(d.at(p), e);
        return "done";
      };
    });
    g.add("acls", 2, "removeAclEntries", t -> {
      String p = g.path(t);
      List<AclEntry> e = entries(t, false);
      return d -> {
        d.name().removeAclEntries(d.at(p), e);
        return "done";
      };
    });
    g.add("acls", 1, "removeDefaultAcl", t -> {
      String p = g.path(t);
      return d -> {
        d.name().removeDefaultAcl(d.at(p));
        return "done";
      };
    });
    g.add("acls", 1, "removeAcl", t -> {
      String p = g.path(t);
      return d -> {
        d.name().removeAcl(d.at(p));
        return "done";
      };
    });
    g.add("acls", 4, "getAclStatus", t -> {
      String p = g.path(t);
      return d -> d.name().getAclStatus(d.at(p)).toString();
    });
  }
}
