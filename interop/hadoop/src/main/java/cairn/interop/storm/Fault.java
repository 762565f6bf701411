package cairn.interop.storm;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;

/**
 * One thing that goes wrong. All of them follow from the seed before the storm begins, so that they can be told and had
 * again.
 *
 * @param at when, in milliseconds from the start
 * @param node the DataNode, or the first of those, or the NameNode that it meets
 * @param lasts for how long, in milliseconds
 * @param dice whatever else is chosen
 */
record Fault(long at, Kind kind, int node, long lasts, long dice) {
  /** What can go wrong, and how often beside the others. */
  enum Kind {
    KILL(12, 10_000, false, "kill -9 of a DataNode, which comes back"),
    PAUSE(7, 12_000, false, "a DataNode that stands still"),
    CUT(7, 20_000, true, "a DataNode without network"),
    DEAF(4, 20_000, true, "a DataNode that cannot send to NameNodes, one or all"),
    SPLIT(4, 15_000, true, "two DataNodes that cannot send to each other"),
    RACK_CUT(2, 15_000, true, "a rack without network"),
    RACK_KILL(2, 8_000, false, "kill -9 of a rack"),
    KILL_ALL(1, 3_000, false, "kill -9 of all DataNodes"),
    FULL(4, 12_000, true, "a volume that somebody else fills"),
    LOSE(9, 0, false, "files of replicas that vanish"),
    CORRUPT(9, 0, false, "files of replicas with other bytes"),
    IMAGE(6, 0, false, "a copy of a DataNode's disks, for later"),
    OLD(6, 3_000, false, "a DataNode that comes back on an old copy of its disks"),
    WIPE(3, 3_000, false, "a DataNode that comes back on empty disks"),
    CLONE(3, 12_000, true, "a second DataNode on a copy of a running one's disks"),
    LEAVE(4, 30_000, false, "a DataNode that is decommissioned"),
    BALANCE(3, 20_000, false, "the balancer"),
    NAME_KILL(4, 4_000, false, "kill -9 of a NameNode, which comes back"),
    NAME_KILL_ALL(1, 3_000, false, "kill -9 of all NameNodes, where there are several"),
    NAME_PAUSE(2, 4_000, false, "a NameNode that stands still"),
    NAME_CUT(2, 8_000, true, "a NameNode without network"),
    NAME_SPLIT(2, 12_000, true, "a NameNode that cannot send to another one"),
    NAME_FULL(1, 5_000, true, "a NameNode whose disk somebody else fills"),
    CLIENT_KILL(4, 0, false, "kill -9 of a process that writes"),
    STEAL(4, 0, false, "two others that have a file closed while it is written");

    final int weight;
    private final int longest;
    final boolean needsIsolation;
    final String means;

    Kind(int weight, int longest, boolean needsIsolation, String means) {
      this.weight = weight;
      this.longest = longest;
      this.needsIsolation = needsIsolation;
      this.means = means;
    }

    private boolean isOfNames() {
      return name().startsWith("NAME_");
    }

    private boolean needsQuorum() {
      return this == NAME_KILL_ALL || this == NAME_SPLIT;
    }
  }

  @Override
  public String toString() {
    String length = lasts == 0 ? "" : " for %.1f s".formatted(lasts / 1e3);
    return "%6.1f s %s %s%d%s".formatted(at / 1e3, kind, kind.isOfNames() ? "nn" : "dn", node, length);
  }

  Random random() {
    return new Random(dice);
  }

  /** What happens in so many seconds. */
  static List<Fault> plan(long seed, int seconds, Pattern wanted, boolean isolated, int nameNodes) {
    List<Kind> kinds = new ArrayList<>();
    for (Kind k : Kind.values()) {
      boolean isPossible = (isolated || !k.needsIsolation) && (nameNodes > 1 || !k.needsQuorum());
      if (wanted.matcher(k.name()).find() && isPossible) {
        for (int i = 0; i < k.weight; i++) {
          kinds.add(k);
        }
      }
    }
    List<Fault> plan = new ArrayList<>();
    Random random = new Random(seed);
    // Files are there first.
    for (long at = 3_000; !kinds.isEmpty() && at < seconds * 1_000L; at += 100 + random.nextInt(1_500)) {
      Kind kind = kinds.get(random.nextInt(kinds.size()));
      int node = random.nextInt(kind.isOfNames() ? nameNodes : Cluster.NODES);
      long lasts = kind.longest == 0 ? 0 : 200 + (long) (kind.longest * random.nextDouble());
      plan.add(new Fault(at, kind, node, lasts, random.nextLong()));
    }
    return plan;
  }
}
