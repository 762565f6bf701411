package cairn.interop.differential;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.BatchedRemoteIterator.BatchedEntries;
import org.apache.hadoop.fs.CacheFlag;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveEntry;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveInfo;
import org.apache.hadoop.hdfs.protocol.CacheDirectiveInfo.Expiration;
import org.apache.hadoop.hdfs.protocol.CachePoolEntry;
import org.apache.hadoop.hdfs.protocol.CachePoolInfo;

/**
 * Calls on cache pools and directives. What is counted is left out, and so are limits: Hadoop counts anew only now and
 * then.
 */
final class CacheCalls {
  private final Generator g;

  private CacheCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    new CacheCalls(g).add();
  }

  private void add() {
    g.add("caching", 3, "addCachePool", t -> {
      Pool p = pool(t);
      return d -> {
        d.name().addCachePool(p.at(d));
        return "done";
      };
    });
    g.add("caching", 2, "modifyCachePool", t -> {
      Pool p = pool(t);
      return d -> {
        d.name().modifyCachePool(p.at(d));
        return "done";
      };
    });
    g.add("caching", 1, "removeCachePool", t -> {
      String name = name(t);
      return d -> {
        d.name().removeCachePool(own(d, name));
        return "done";
      };
    });
    g.add("caching", 2, "listCachePools", t -> d -> pools(d));
    g.add("caching", 4, "addCacheDirective", t -> {
      Directive what = directive(t);
      return d -> {
        long id = d.name().addCacheDirective(what.at(d, null), what.flags());
        d.ids().put("directive", id);
        return "added";
      };
    });
    g.add("caching", 3, "modifyCacheDirective", t -> {
      Directive what = directive(t);
      boolean named = Generator.arg(t, g.chance(90));
      return d -> {
        Long id = named ? d.ids().getOrDefault("directive", -1L) : null;
        return Call.done(() -> d.name().modifyCacheDirective(what.at(d, id), what.flags()));
      };
    });
    g.add("caching", 1, "removeCacheDirective", t -> d -> {
      long id = d.ids().getOrDefault("directive", 0L);
      return Call.done(() -> d.name().removeCacheDirective(id));
    });
    g.add("caching", 3, "listCacheDirectives", t -> {
      String pool = g.chance(50) ? null : name(t);
      String path = g.chance(50) ? null : g.path(t);
      return d -> {
        CacheDirectiveInfo.Builder filter = new CacheDirectiveInfo.Builder();
        filter.setPool(pool == null ? null : own(d, pool));
        filter.setPath(path == null ? null : new Path(d.at(path)));
        return directives(d, filter.build());
      };
    });
  }

  private String name(StringBuilder text) {
    return Generator.arg(text, g.pick(List.of("p", "q", "r", "")));
  }

  /** Pools are not below the folder of a run. */
  private static String own(Door d, String name) {
    return name.isEmpty() ? name : name + d.root().replace('/', '-');
  }

  private record Pool(String name, String owner, String group, Short mode, Short copies, Long ttl) {
    CachePoolInfo at(Door d) {
      CachePoolInfo info = new CachePoolInfo(own(d, name)).setOwnerName(owner).setGroupName(group);
      info.setMode(mode == null ? null : new FsPermission(mode));
      return info.setDefaultReplication(copies).setMaxRelativeExpiryMs(ttl);
    }
  }

  private <T> T maybe(StringBuilder text, List<T> of) {
    return Generator.arg(text, g.chance(50) ? null : g.pick(of));
  }

  private Pool pool(StringBuilder text) {
    return new Pool(
        name(text),
        maybe(text, List.of("alice", "bob", "nobody")),
        maybe(text, List.of("staff", "dev", "others")),
        maybe(text, List.of((short) 0777, (short) 0750, (short) 0700, (short) 0, (short) 01777)),
        maybe(text, List.of((short) 1, (short) 3, (short) 0, (short) -1)),
        maybe(text, List.of(TimeUnit.DAYS.toMillis(10), -1L, Long.MAX_VALUE, Long.MAX_VALUE / 4)));
  }

  private record Directive(String path, String pool, Short copies, Long days, EnumSet<CacheFlag> flags) {
    CacheDirectiveInfo at(Door d, Long id) {
      CacheDirectiveInfo.Builder info = new CacheDirectiveInfo.Builder().setId(id);
      info.setPath(path == null ? null : new Path(d.at(path)));
      info.setPool(pool == null ? null : own(d, pool)).setReplication(copies);
      info.setExpiration(days == null ? null : Expiration.newRelative(TimeUnit.DAYS.toMillis(days)));
      return info.build();
    }
  }

  private Directive directive(StringBuilder text) {
    EnumSet<CacheFlag> flags =
        g.chance(30) ? EnumSet.of(CacheFlag.FORCE) : EnumSet.noneOf(CacheFlag.class);
    return new Directive(
        g.chance(10) ? null : g.path(text),
        g.chance(10) ? null : name(text),
        maybe(text, List.of((short) 1, (short) 2, (short) 0, (short) -1)),
        maybe(text, List.of(1L, 9L, 11L, -1L)),
        Generator.arg(text, flags));
  }

  private static String pools(Door d) throws Exception {
    List<String> lines = new ArrayList<>();
    String prev = "";
    while (true) {
      BatchedEntries<CachePoolEntry> page = d.name().listCachePools(prev);
      for (int i = 0; i < page.size(); i++) {
        CachePoolInfo info = page.get(i).getInfo();
        prev = info.getPoolName();
        if (prev.endsWith(d.root().replace('/', '-'))) {
          lines.add(info.toString());
        }
      }
      if (!page.hasMore()) {
        return lines.toString();
      }
    }
  }

  private static String directives(Door d, CacheDirectiveInfo filter) throws Exception {
    List<String> lines = new ArrayList<>();
    long prev = 0;
    while (true) {
      BatchedEntries<CacheDirectiveEntry> page = d.name().listCacheDirectives(prev, filter);
      for (int i = 0; i < page.size(); i++) {
        CacheDirectiveInfo info = page.get(i).getInfo();
        prev = info.getId();
        if (info.getPool().endsWith(d.root().replace('/', '-'))) {
          long left = info.getExpiration().getAbsoluteMillis() - System.currentTimeMillis();
          long hours = Math.round(left / 3_600_000.0);
          String ends = hours > 24 * 365 ? "never" : "in " + hours + " h";
          lines.add(
              info.getPath().toUri().getPath() + " " + info.getReplication() + " " + info.getPool()
                  + " " + ends + " " + page.get(i).getStats().hasExpired());
        }
      }
      if (!page.hasMore()) {
        return lines.toString();
      }
    }
  }
}
