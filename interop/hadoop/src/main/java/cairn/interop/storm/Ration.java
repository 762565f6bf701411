package cairn.interop.storm;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * How much may be destroyed: of each block so much that what is left is enough, also when the NameNode, which does not know
 * yet what is destroyed, deletes what it takes for surplus. Faults that pass are not rationed: what is on a disk is there,
 * whether its DataNode runs or not.
 *
 * <p>Of a block, every place counts at which the NameNode has a replica or unit, at which there is one, or at which one was
 * destroyed and the NameNode may not know it yet. What is surplus of these may be deleted, and it may be the good ones that
 * are. Of a group, an index is safe only if all its places are good.
 */
final class Ration {
  /** After so long without a disturbance a DataNode has told what it has. */
  private static final long TOLD_NANOS = TimeUnit.SECONDS.toNanos(25);

  private final Cluster cluster;

  /** What was destroyed, and may still be counted on. */
  private final Set<Part> destroyed = new HashSet<>();

  Ration(Cluster cluster) {
    this.cluster = cluster;
  }

  /** Why these may not be destroyed, or be there without being good; null if they may. */
  synchronized String refusal(Known known, Disks disks, Collection<Part> victims) {
    forget(known, disks);
    Map<Long, Set<Part>> byBlock = new HashMap<>();
    for (Part p : victims) {
      byBlock.computeIfAbsent(p.group(), i -> new HashSet<>()).add(p);
    }
    for (var e : byBlock.entrySet()) {
      Known.Block block = known.blocks.get(e.getKey());
      // Without one, it is of a file that is gone. Nothing of a group is acknowledged before it is complete.
      if (block != null && (block.isComplete() || block.policy() == null)) {
        int before = safe(known, disks, block, Set.of());
        int after = safe(known, disks, block, e.getValue());
        boolean isWorse = after < before || hasGood(disks, block, e.getValue());
        if (isWorse && after < block.needed()) {
          return "of blk_%d (%s) %d would be safe, %d are needed"
              .formatted(block.id(), block.path(), after, block.needed());
        }
        if (after < block.needed()) {
          Storm.note("%s is lost or torn already: %s, victims %s".formatted(block, on(disks, block), e.getValue()));
        }
      }
    }
    return null;
  }

  /** What disks have of a block, for whoever looks for what happened to it. */
  private static List<String> on(Disks disks, Known.Block block) {
    List<String> found = new ArrayList<>();
    for (int unit = 0; unit < block.units(); unit++) {
      for (Disks.Replica r : disks.replicas.getOrDefault(block.id() + unit, List.of())) {
        found.add(r.part() + " of stamp " + r.stamp + (block.isWhole(r) ? ", good" : ", not good"));
      }
    }
    return found;
  }

  private static boolean hasGood(Disks disks, Known.Block block, Set<Part> parts) {
    return parts.stream()
        .flatMap(p -> disks.replicas.getOrDefault(p.id(), List.of()).stream())
        .anyMatch(r -> parts.contains(r.part()) && block.isWhole(r));
  }

  /** What of these nobody else has, as far as the NameNode knows and disks show: none if it lets their node go. */
  List<Part> alone(Known known, Disks disks, Collection<Part> parts) {
    List<Part> alone = new ArrayList<>();
    for (Part p : parts) {
      Known.Block block = known.blocks.get(p.group());
      if (block != null && block.isComplete()) {
        Set<Part> others = new HashSet<>(block.parts());
        disks.replicas.getOrDefault(p.id(), List.of()).forEach(r -> others.add(r.part()));
        if (others.stream().noneMatch(o -> o.id() == p.id() && !known.decommissioned.contains(o.node()))) {
          alone.add(p);
        }
      }
    }
    return alone;
  }

  /** How many replicas, or indices of a group, are there whatever the NameNode deletes as surplus. */
  private int safe(Known known, Disks disks, Known.Block block, Set<Part> victims) {
    Set<Part> counted = new HashSet<>(victims);
    Set<Part> good = new HashSet<>();
    counted.addAll(block.parts());
    destroyed.stream().filter(p -> p.group() == block.id()).forEach(counted::add);
    for (int unit = 0; unit < block.units(); unit++) {
      for (Disks.Replica r : disks.replicas.getOrDefault(block.id() + unit, List.of())) {
        counted.add(r.part());
        if (block.isWhole(r)) {
          good.add(r.part());
        }
      }
    }
    counted.removeIf(p -> known.decommissioned.contains(p.node()));
    good.removeIf(p -> known.decommissioned.contains(p.node()));
    good.removeAll(victims);
    if (block.policy() == null) {
      return good.size() - Math.max(0, counted.size() - block.wanted());
    }
    int safe = 0;
    for (int unit = 0; unit < block.units(); unit++) {
      int index = unit;
      List<Part> places = counted.stream().filter(p -> p.unit() == index).toList();
      safe += !places.isEmpty() && good.containsAll(places) ? 1 : 0;
    }
    return safe;
  }

  /** Whether something of these blocks was destroyed that the NameNode may count on. */
  synchronized boolean hasDestroyed(Set<Long> blocks) {
    return destroyed.stream().anyMatch(p -> blocks.contains(p.group()));
  }

  /** They are destroyed now. */
  synchronized void destroyed(Collection<Part> parts) {
    destroyed.addAll(parts);
  }

  /** Forgets what the NameNode knows of by now, and what is there again. */
  private void forget(Known known, Disks disks) {
    long now = System.nanoTime();
    if (now - cluster.namesDisturbed() < TOLD_NANOS) {
      return;
    }
    destroyed.removeIf(
        p -> {
          Known.Block block = known.blocks.get(p.group());
          if (block == null) {
            return true;
          }
          Cluster.Node node = cluster.nodes.get(p.node());
          boolean hasTold = known.live.contains(p.node()) && node.isWell() && now - node.disturbed > TOLD_NANOS;
          boolean isThere =
              disks.replicas.getOrDefault(p.id(), List.of()).stream().anyMatch(r -> r.node == p.node());
          return hasTold && !isThere && !block.parts().contains(p);
        });
  }
}
