package cairn.interop.storm;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** What happens to disks: those that fill pass, those that destroy are rationed. */
final class DiskFaults {
  private final Storm storm;
  private final Cluster cluster;
  private final Faults faults;
  private final DistributedFileSystem admin;
  private final Map<Integer, List<File>> images = new HashMap<>();
  private final List<File> fillers = new ArrayList<>();

  /** The DataNode of which there is a clone; -1 for none. */
  private int cloned = -1;

  DiskFaults(Storm storm, Cluster cluster, Faults faults, DistributedFileSystem admin) {
    this.storm = storm;
    this.cluster = cluster;
    this.faults = faults;
    this.admin = admin;
  }

  boolean isCloned(Cluster.Node node) {
    return node.index == cloned;
  }

  boolean isClonePending() {
    return cloned >= 0;
  }

  boolean isFull(File volume) {
    return fillers.stream().anyMatch(f -> f.getParentFile().equals(volume));
  }

  void unfillAll() {
    List.copyOf(fillers).forEach(this::unfill);
  }

  /** Takes all space of a volume but so much. */
  void fill(File volume, int left, long lasts) throws IOException {
    File filler = new File(volume, "filler");
    if (filler.exists()) {
      return;
    }
    fillers.add(filler);
    byte[] piece = new byte[1 << 16];
    try (OutputStream out = new FileOutputStream(filler)) {
      while (true) {
        out.write(piece);
      }
    } catch (IOException e) {
      // It is full.
    }
    try (RandomAccessFile file = new RandomAccessFile(filler, "rw")) {
      file.setLength(Math.max(0, file.length() - left));
    }
    faults.after(lasts, () -> unfill(filler));
  }

  void unfill(File filler) {
    filler.delete();
    fillers.remove(filler);
  }

  /** What of the cluster is known for the ration; null when the NameNode does not tell. */
  private Known known() {
    if (!faults.nameNodeAnswers()) {
      return null;
    }
    try {
      return new Known(cluster, admin, storm.folders());
    } catch (IOException e) {
      Storm.note("what the NameNode knows: " + e);
      return null;
    }
  }

  private interface Destruction {
    String run(Known known, Disks disks) throws Exception;
  }

  /** Destroys something while no call changes what files have which blocks. */
  private String destroy(Destruction what) throws Exception {
    if (!storm.names.writeLock().tryLock(5, TimeUnit.SECONDS)) {
      return "calls are under way";
    }
    try {
      Known known = known();
      return known == null ? "the NameNode does not answer" : what.run(known, new Disks(cluster));
    } finally {
      storm.names.writeLock().unlock();
    }
  }

  String damage(boolean lose, Random random) throws Exception {
    return destroy(
        (known, disks) -> {
          List<Disks.Replica> all = new ArrayList<>();
          for (List<Disks.Replica> of : disks.replicas.values()) {
            for (Disks.Replica r : of) {
              Known.Block block = known.blocks.get(r.part().group());
              if (r.isFinalized && block != null && block.isComplete()) {
                all.add(r);
              }
            }
          }
          all.sort(Comparator.comparing((Disks.Replica r) -> r.id).thenComparing(r -> r.node));
          Collections.shuffle(all, random);
          List<Part> victims = new ArrayList<>();
          List<Disks.Replica> files = new ArrayList<>();
          String why = "there is nothing";
          for (Disks.Replica r : all.subList(0, Math.min(all.size(), 8))) {
            List<Part> more = new ArrayList<>(victims);
            more.add(r.part());
            String refused = storm.ration.refusal(known, disks, more);
            if (refused == null) {
              victims = more;
              files.add(r);
            } else {
              why = refused;
            }
          }
          storm.ration.destroyed(victims);
          for (Disks.Replica r : files) {
            Storm.note((lose ? "lost: " : "damaged: ") + r.part() + " " + r.block);
            if (lose) {
              lose(r, random.nextInt(3));
            } else {
              corrupt(random.nextInt(4) == 0 ? r.meta : r.block, random);
            }
          }
          return files.isEmpty() ? why : null;
        });
  }

  private static void lose(Disks.Replica r, int what) {
    if (what != 1) {
      r.block.delete();
    }
    if (what != 0) {
      r.meta.delete();
    }
  }

  /** Changes bytes of a file in its place, or its length. */
  private static void corrupt(File file, Random random) throws IOException {
    try (RandomAccessFile f = new RandomAccessFile(file, "rw")) {
      int length = (int) f.length();
      if (length == 0 || random.nextInt(5) == 0) {
        f.setLength(random.nextInt(length + 1));
        return;
      }
      int at = random.nextInt(length);
      byte[] bytes = new byte[Math.min(length - at, random.nextBoolean() ? 1 : 4096)];
      f.seek(at);
      f.readFully(bytes);
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] ^= (byte) (1 + random.nextInt(255));
      }
      f.seek(at);
      f.write(bytes);
    } catch (IOException e) {
      // Its DataNode was first to delete it.
    }
  }

  private File imageFolder(Cluster.Node node, int volume) {
    return new File(cluster.work, "images/" + node + "/v" + volume);
  }

  private static void copy(List<File> from, List<File> to) throws Exception {
    for (int v = 0; v < from.size(); v++) {
      to.get(v).mkdirs();
      FileUtil.fullyDeleteContents(to.get(v));
      Cluster.run("cp", "-a", from.get(v).getPath() + "/.", to.get(v).getPath());
      new File(to.get(v), "filler").delete();
      new File(to.get(v), "in_use.lock").delete();
    }
  }

  String image(Cluster.Node node) throws Exception {
    if (node.index == cloned || node.volumes.stream().anyMatch(this::isFull)) {
      return "its disks are not its own";
    }
    boolean wasPaused = node.isPaused;
    node.pause(true);
    List<File> image = new ArrayList<>();
    for (int v = 0; v < node.volumes.size(); v++) {
      image.add(imageFolder(node, v));
    }
    copy(node.volumes, image);
    if (!wasPaused) {
      node.pause(false);
    }
    images.put(node.index, image);
    return null;
  }

  /** Parts that are not as good on other disks as they are on their own. */
  private static List<Part> worse(Known known, List<Disks.Replica> now, List<Disks.Replica> then) {
    Map<Long, Boolean> goodThen = new HashMap<>();
    for (Disks.Replica r : then) {
      Known.Block block = known.blocks.get(r.part().group());
      goodThen.merge(r.id, block == null || block.isWhole(r), Boolean::logicalOr);
    }
    Set<Part> worse = new HashSet<>();
    now.stream().filter(r -> !goodThen.getOrDefault(r.id, false)).forEach(r -> worse.add(r.part()));
    // A bad one that is there again may be counted on.
    then.stream().filter(r -> !goodThen.get(r.id)).forEach(r -> worse.add(r.part()));
    return new ArrayList<>(worse);
  }

  /** Puts old or empty disks into a DataNode that bears it: that one, or the next that does. */
  String replaceOne(int first, boolean old, long lasts, Random random) throws Exception {
    int only = old || random.nextBoolean() ? -1 : random.nextInt(2);
    Cluster.Node[] found = {null};
    String refused =
        destroy(
            (known, disks) -> {
              String why = "there is none";
              for (int i = 0; i < Cluster.NODES && found[0] == null; i++) {
                Cluster.Node n = cluster.nodes.get((first + i) % Cluster.NODES);
                if (mayBeReplaced(n) && (!old || images.containsKey(n.index))) {
                  why = storm.ration.refusal(known, disks, loss(known, n, old, only));
                  found[0] = why == null ? n : null;
                }
              }
              return why;
            });
    return refused != null ? refused : replace(found[0], old, only, lasts);
  }

  boolean mayBeReplaced(Cluster.Node node) {
    return !faults.isDown(node) && node.index != cloned;
  }

  private List<File> replaced(Cluster.Node node, int only) {
    return only < 0 ? node.volumes : List.of(node.volumes.get(only));
  }

  private List<Part> loss(Known known, Cluster.Node node, boolean old, int only) {
    List<Disks.Replica> then = old ? Disks.scan(node.index, images.get(node.index)) : List.of();
    return worse(known, Disks.scan(node.index, replaced(node, only)), then);
  }

  String replace(Cluster.Node node, boolean old, int only, long lasts) throws Exception {
    faults.kill(List.of(node), lasts);
    return destroy(
        (known, disks) -> {
          List<Part> victims = loss(known, node, old, only);
          if (known.decommissioned.contains(node.index)) {
            List<Part> alone = storm.ration.alone(known, disks, victims);
            if (!alone.isEmpty()) {
              storm.violated(node + " is decommissioned, and nobody else has " + alone);
            }
          }
          String refused = storm.ration.refusal(known, disks, victims);
          if (refused != null) {
            return refused + " (" + node + " was killed only)";
          }
          storm.ration.destroyed(victims);
          Storm.note(node + " gets other disks and loses " + victims);
          if (old) {
            copy(images.get(node.index), node.volumes);
          } else {
            replaced(node, only).forEach(FileUtil::fullyDeleteContents);
          }
          return null;
        });
  }

  String makeClone(Cluster.Node node, long lasts) throws Exception {
    if (cloned >= 0 || !node.isRunning() || node.volumes.stream().anyMatch(this::isFull)) {
      return "it cannot be copied";
    }
    cloned = node.index;
    Cluster.Node clone = cluster.nodes.get(Cluster.CLONE);
    boolean wasPaused = node.isPaused;
    node.pause(true);
    copy(node.volumes, clone.volumes);
    if (!wasPaused) {
      node.pause(false);
    }
    clone.start();
    faults.after(lasts, () -> endClone(2_000));
    return null;
  }

  /** Of two DataNodes with one identity, gives one's disks up as soon as that may be. */
  void endClone(long again) throws Exception {
    if (cloned < 0) {
      return;
    }
    Cluster.Node node = cluster.nodes.get(cloned);
    Cluster.Node clone = cluster.nodes.get(Cluster.CLONE);
    clone.kill();
    node.kill();
    String refused =
        destroy(
            (known, disks) -> {
              String why = giveUp(known, disks, clone, node);
              if (why == null) {
                return null;
              }
              why = giveUp(known, disks, node, clone);
              if (why == null) {
                copy(clone.volumes, node.volumes);
              }
              return why;
            });
    if (refused != null) {
      Storm.say("neither the disks of " + node + " nor those of its clone can be given up: " + refused);
      clone.start();
      if (storm.isOver()) {
        // What is bad and is read by nobody would be found by the scanner in weeks.
        for (String folder : storm.folders()) {
          Storm.note("scrub: " + cluster.output(60, "scrub", "--repair", "--wait", "10", folder));
        }
      }
      faults.after(again, () -> endClone(again + 5_000));
      return;
    }
    clone.volumes.forEach(FileUtil::fullyDeleteContents);
    cloned = -1;
    node.start();
  }

  private String giveUp(Known known, Disks disks, Cluster.Node gone, Cluster.Node stays) {
    List<Part> victims = worse(known, disks.of(gone.index), disks.of(stays.index));
    String refused = storm.ration.refusal(known, disks, victims);
    if (refused == null) {
      Storm.note("the disks of " + gone + " are given up, which loses " + victims);
      storm.ration.destroyed(victims.stream().map(p -> new Part(p.id(), cloned)).toList());
    }
    return refused;
  }
}
