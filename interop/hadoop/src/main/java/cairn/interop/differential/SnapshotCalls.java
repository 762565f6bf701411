package cairn.interop.differential;

import static cairn.interop.differential.Generator.BLOCK;
import static cairn.interop.differential.Generator.arg;

import java.util.List;

/** Calls on snapshots, and on paths in them. */
final class SnapshotCalls {
  private final Generator g;

  private SnapshotCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    SnapshotCalls calls = new SnapshotCalls(g);
    calls.add();
  }

  private String snapshot(StringBuilder text) {
    return arg(text, g.chance(10) ? "a/b" : g.pick(List.of("s0", "s1", "s2")));
  }

  private void add() {
    g.add("snapshots", 2, "allowSnapshot", t -> {
      String p = g.path(t);
      return d -> {
        d.name().allowSnapshot(d.at(p));
        return "done";
      };
    });
    g.add("snapshots", 1, "disallowSnapshot", t -> {
      String p = g.path(t);
      return d -> {
        d.name().disallowSnapshot(d.at(p));
        return "done";
      };
    });
    g.add("snapshots", 4, "createSnapshot", t -> {
      String p = g.someOf(t);
      String s = snapshot(t);
      return d -> d.name().createSnapshot(d.at(p), s);
    });
    g.add("snapshots", 2, "deleteSnapshot", t -> {
      String p = g.someOf(t);
      String s = snapshot(t);
      return d -> {
        d.name().deleteSnapshot(d.at(p), s);
        return "done";
      };
    });
    g.add("snapshots", 1, "renameSnapshot", t -> {
      String p = g.someOf(t);
      String from = snapshot(t);
      String to = snapshot(t);
      return d -> {
        d.name().renameSnapshot(d.at(p), from, to);
        return "done";
      };
    });
    g.add("snapshots", 3, "getSnapshotDiffReport", t -> {
      String p = g.someOf(t);
      String from = snapshot(t);
      String to = g.chance(30) ? arg(t, "") : snapshot(t);
      return d -> Text.diff(d.name().getSnapshotDiffReport(d.at(p), from, to));
    });
    g.add("snapshots", 2, "getSnapshotListing", t -> {
      String p = g.path(t);
      return d -> "" + d.name().getSnapshotListing(d.at(p)).length;
    });
    g.add("snapshots", 4, "getListing", t -> {
      String p = arg(t, g.plain() + "/.snapshot/" + g.pick(List.of("", "s0", "s1", "s2")) + g.pick(List.of("", "/a", "/b/c")));
      return d -> Text.listing(d.name().getListing(d.at(p), new byte[0], false));
    });
    g.add("snapshots", 3, "getBlockLocations", t -> {
      String p = arg(t, g.plain() + "/.snapshot/" + g.pick(List.of("s0", "s1", "s2")) + g.pick(List.of("/a", "/b/c")));
      return d -> Text.blocks(d.name().getBlockLocations(d.at(p), 0, 10 * BLOCK));
    });
  }
}
