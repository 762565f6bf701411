package cairn.interop.storm;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;

/** Carries faults out and takes back those that pass. Everything that happens to processes and disks is done here. */
final class Faults {
  interface Action {
    void run() throws Exception;
  }

  private record Later(long at, Action action) {}

  private final Storm storm;
  private final Cluster cluster;
  private final DistributedFileSystem admin;
  private final List<DistributedFileSystem> thieves;
  private final PriorityQueue<Later> agenda = new PriorityQueue<>(Comparator.comparingLong(Later::at));
  private final DiskFaults disks;
  private final Set<Integer> leaving = new HashSet<>();

  /** DataNodes that do not run because of a fault. */
  private final Set<Integer> down = new HashSet<>();

  private final Set<Cluster.NameNode> namesDown = new HashSet<>();
  private Process balancer;

  Faults(Storm storm, Cluster cluster) throws IOException {
    this.storm = storm;
    this.cluster = cluster;
    admin = cluster.connect();
    thieves = List.of(cluster.connect(), cluster.connect());
    disks = new DiskFaults(storm, cluster, this, admin);
  }

  /** Carries a plan out, to its end or to that of the storm. */
  void run(List<Fault> plan, int seconds) throws Exception {
    int next = 0;
    while (!storm.isOver() && Storm.millis() < seconds * 1_000L) {
      long now = Storm.millis();
      if (!agenda.isEmpty() && agenda.peek().at <= now) {
        agenda.poll().action.run();
      } else if (next < plan.size() && plan.get(next).at() <= now) {
        Fault f = plan.get(next++);
        String skipped = apply(f);
        Storm.say(f + (skipped == null ? "" : ", not done: " + skipped));
        if (skipped == null) {
          storm.counts.fault(f.kind().name());
        }
      } else {
        watch();
        storm.progress();
        Thread.sleep(50);
      }
    }
  }

  void after(long millis, Action action) {
    agenda.add(new Later(Storm.millis() + millis, action));
  }

  /** Processes that end by themselves, and calls that do not. */
  private void watch() throws Exception {
    for (Worker w : storm.workers) {
      if (w.endIfHung()) {
        Storm.say(w.folder + ": Hadoop's writer waits for itself, and is interrupted");
      }
    }
    for (Cluster.NameNode n : cluster.nameNodes) {
      if (!n.isRunning() && namesDown.add(n)) {
        if (!disks.isFull(n.folder)) {
          storm.violated(n + " has ended by itself with status " + n.process.exitValue());
        }
        after(1_000, () -> startNameNode(n));
      }
    }
    for (Cluster.Node n : cluster.nodes.subList(0, Cluster.NODES)) {
      if (!down.contains(n.index) && !n.isRunning() && !disks.isCloned(n)) {
        // A disk without any space is one that has failed, and of two with one identity one has to go.
        boolean isExcused = n.volumes.stream().anyMatch(disks::isFull) || n.process.exitValue() == 0;
        if (!isExcused) {
          storm.violated(n + " has ended by itself with status " + n.process.exitValue());
        }
        n.start();
      }
    }
  }

  boolean isDown(Cluster.Node node) {
    return down.contains(node.index);
  }

  /** Whether most NameNodes can be spoken to, as far as faults go. */
  boolean nameNodeAnswers() {
    return cluster.nameNodes.stream().filter(Machine::isWell).count() * 2 > cluster.nameNodes.size();
  }

  private void startNameNode(Cluster.NameNode n) throws IOException {
    if (namesDown.remove(n)) {
      n.start();
    }
  }

  private String killNameNodes(List<Cluster.NameNode> names, long lasts) throws Exception {
    if (namesDown.containsAll(names)) {
      return "down already";
    }
    for (Cluster.NameNode n : names) {
      if (namesDown.add(n)) {
        n.kill();
        after(lasts, () -> startNameNode(n));
      }
    }
    return null;
  }

  private String pause(Machine machine, long lasts) throws Exception {
    if (!machine.isRunning() || machine.isPaused) {
      return "it does not run";
    }
    machine.pause(true);
    after(lasts, () -> machine.pause(false));
    return null;
  }

  private void silence(Machine machine, String address, long lasts) throws Exception {
    machine.reach(address, false);
    after(lasts, () -> machine.reach(address, true));
  }

  void startDataNode(int node) throws IOException {
    if (down.remove(node)) {
      cluster.nodes.get(node).start();
    }
  }

  private List<Cluster.Node> rack(int node) {
    return cluster.nodes.subList(0, Cluster.NODES).stream()
        .filter(n -> n.index % Cluster.RACKS == node % Cluster.RACKS)
        .toList();
  }

  void kill(List<Cluster.Node> nodes, long lasts) throws Exception {
    for (Cluster.Node n : nodes) {
      if (!disks.isCloned(n) && down.add(n.index)) {
        n.kill();
        after(lasts, () -> startDataNode(n.index));
      }
    }
  }

  private void cut(List<? extends Machine> machines, long lasts) throws Exception {
    for (Machine n : machines) {
      n.cut(true);
      after(lasts, () -> n.cut(false));
    }
  }

  /** Why it was not done; null if it was. */
  private String apply(Fault f) throws Exception {
    Random random = f.random();
    int names = cluster.nameNodes.size();
    Cluster.Node node = cluster.nodes.get(f.node());
    Cluster.NameNode name = cluster.nameNodes.get(f.node() % names);
    switch (f.kind()) {
      case KILL -> {
        if (isDown(node) || disks.isCloned(node)) {
          return "it is down";
        }
        kill(List.of(node), f.lasts());
      }
      case RACK_KILL -> kill(rack(f.node()), f.lasts());
      case KILL_ALL -> kill(cluster.nodes.subList(0, Cluster.NODES), f.lasts());
      case PAUSE -> {
        return pause(node, f.lasts());
      }
      case CUT -> cut(List.of(node), f.lasts());
      case RACK_CUT -> cut(rack(f.node()), f.lasts());
      case DEAF -> {
        int only = random.nextInt(names + 1);
        for (int i = 0; i < names; i++) {
          if (only == names || only == i) {
            silence(node, cluster.nameNodes.get(i).address, f.lasts());
          }
        }
      }
      case SPLIT -> {
        int other = (node.index + 1 + random.nextInt(Cluster.NODES - 1)) % Cluster.NODES;
        silence(node, cluster.nodes.get(other).address, f.lasts());
      }
      case FULL -> disks.fill(node.volumes.get(random.nextInt(node.volumes.size())), 0, f.lasts());
      case NAME_FULL -> disks.fill(name.folder, random.nextInt(400_000), f.lasts());
      case LOSE, CORRUPT -> {
        return disks.damage(f.kind() == Fault.Kind.LOSE, random);
      }
      case IMAGE -> {
        return disks.image(node);
      }
      case OLD, WIPE -> {
        return disks.replaceOne(node.index, f.kind() == Fault.Kind.OLD, f.lasts(), random);
      }
      case CLONE -> {
        return disks.makeClone(node, f.lasts());
      }
      case LEAVE -> {
        if (!leaving.isEmpty()) {
          return "another one leaves";
        }
        return leave(node, f.lasts(), random);
      }
      case BALANCE -> {
        if (balancer != null && balancer.isAlive()) {
          return "it runs";
        }
        balancer = cluster.command("balancer", "balance", "--threshold", "1");
        after(f.lasts(), () -> balancer.destroyForcibly());
      }
      case NAME_KILL -> {
        return killNameNodes(List.of(name), f.lasts());
      }
      case NAME_KILL_ALL -> {
        return killNameNodes(cluster.nameNodes, f.lasts());
      }
      case NAME_PAUSE -> {
        return pause(name, f.lasts());
      }
      case NAME_CUT -> cut(List.of(name), f.lasts());
      case NAME_SPLIT -> {
        int other = (cluster.nameNodes.indexOf(name) + 1 + random.nextInt(names - 1)) % names;
        silence(name, cluster.nameNodes.get(other).address, f.lasts());
      }
      case CLIENT_KILL -> {
        List<CairnClient> clients = new ArrayList<>();
        for (Worker w : storm.workers) {
          if (w.client instanceof CairnClient c) {
            clients.add(c);
          }
        }
        clients.get(random.nextInt(clients.size())).kill();
      }
      case STEAL -> {
        return steal(random);
      }
      default -> throw new AssertionError(f);
    }
    return null;
  }

  private String leave(Cluster.Node node, long lasts, Random random) throws Exception {
    leaving.add(node.index);
    cluster.setLeaving(leaving);
    if (!refresh()) {
      leaving.clear();
      cluster.setLeaving(leaving);
      return "the NameNode does not answer";
    }
    boolean wipes = random.nextBoolean();
    long end = Storm.millis() + lasts;
    after(1_000, () -> lookAtLeaving(node, end, wipes));
    return null;
  }

  private boolean refresh() {
    try {
      admin.refreshNodes();
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private void lookAtLeaving(Cluster.Node node, long end, boolean wipes) throws Exception {
    boolean isGone = false;
    if (nameNodeAnswers()) {
      try {
        for (DatanodeInfo info : admin.getDataNodeStats(DatanodeReportType.ALL)) {
          isGone |= cluster.indexOf(info) == node.index && info.isDecommissioned();
        }
      } catch (IOException e) {
        Storm.note("DataNodes that leave: " + e);
      }
    }
    if (isGone && wipes && disks.mayBeReplaced(node)) {
      String refused = disks.replace(node, false, -1, 1_000);
      Storm.say(node + " is decommissioned" + (refused == null ? ", its disks are given up" : "; " + refused));
    }
    if (isGone || Storm.millis() > end) {
      stay();
    } else {
      after(1_000, () -> lookAtLeaving(node, end, wipes));
    }
  }

  private void stay() throws Exception {
    leaving.clear();
    cluster.setLeaving(leaving);
    if (!refresh()) {
      after(1_000, this::stay);
    }
  }

  private String steal(Random random) {
    List<String> open = new ArrayList<>();
    for (Worker w : storm.workers) {
      for (StoredFile f : w.files) {
        if (!f.state().isSettled()) {
          open.add(f.state().path());
        }
      }
    }
    if (open.isEmpty()) {
      return "no file is open";
    }
    Path path = new Path(open.get(random.nextInt(open.size())));
    for (DistributedFileSystem thief : thieves) {
      Thread t =
          new Thread(
              () -> {
                try {
                  thief.recoverLease(path);
                } catch (IOException e) {
                  Storm.note("recoverLease: " + e);
                }
              });
      t.setDaemon(true);
      t.start();
    }
    return null;
  }

  /** Takes back all that passes. */
  void heal() throws Exception {
    agenda.clear();
    disks.unfillAll();
    if (balancer != null) {
      balancer.destroyForcibly();
    }
    for (Machine m : cluster.machines()) {
      m.pause(false);
      m.cut(false);
      for (String address : List.copyOf(m.unreachable)) {
        m.reach(address, true);
      }
    }
    for (Cluster.NameNode n : cluster.nameNodes) {
      startNameNode(n);
    }
    for (int node : List.copyOf(down)) {
      startDataNode(node);
    }
    stay();
    disks.endClone(3_000);
  }

  /** Goes on with what needs time; whether nothing is left of it. */
  boolean isHealed() throws Exception {
    watch();
    while (!agenda.isEmpty() && agenda.peek().at <= Storm.millis()) {
      agenda.poll().action.run();
    }
    return agenda.isEmpty() && !disks.isClonePending();
  }
}
