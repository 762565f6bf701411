package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSInotifyEventInputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.inotify.Event;
import org.apache.hadoop.hdfs.inotify.EventBatch;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/** A NameNode that is killed while a DataNode is being decommissioned, or while what a dead one held is rebuilt. */
final class RestartTests {
  private static final int NODES = 7;
  private static final int MIB = 1 << 20;

  /** More than the NameNode's log keeps behind a checkpoint. */
  private static final int CHANGES = 24_000;

  private static final int WRITERS = 16;

  private final Roles roles;
  private final File hosts;
  private final Map<Path, String> digests = new LinkedHashMap<>();

  private RestartTests(Roles roles, File hosts) {
    this.roles = roles;
    this.hosts = hosts;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("restart/")) {
      return;
    }
    Map<String, String> keys = x.keys();
    File hosts = new File(x.work(), "restart.hosts");
    Files.writeString(hosts.toPath(), "");
    keys.put(
        "dfs.namenode.hosts.provider.classname",
        "org.apache.hadoop.hdfs.server.blockmanagement.CombinedHostFileManager");
    keys.put("dfs.hosts", hosts.getPath());
    keys.put("dfs.namenode.decommission.interval", "1");
    keys.put("dfs.namenode.heartbeat.recheck-interval", "500");
    keys.put("dfs.namenode.reconstruction.pending.timeout-sec", "15");
    // Slow enough for a NameNode to be killed in the middle.
    keys.put("dfs.datanode.data.transfer.bandwidthPerSec", "" + 2 * MIB);
    keys.put("dfs.datanode.ec.reconstruct.write.bandwidthPerSec", "" + 2 * MIB);
    try (Roles roles = new Roles(x.target(), new File(x.work(), "restart"), NODES, keys)) {
      RestartTests t = new RestartTests(roles, hosts);
      x.runner().test("restart/kill -9 of the NameNode in the middle of a decommission", t::decommission);
      x.runner().test("restart/kill -9 of the NameNode in the middle of a repair", t::repair);
      x.runner().test("restart/kill -9 of the NameNode that has ordered a lease's recovery", t::recovery);
      x.runner().test("restart/kill -9 of the NameNode that is watched", t::watched);
      if (x.full()) {
        x.runner()
            .test("restart/watchers who come back are told what the log no longer has", t::watchedLong);
      }
    }
  }

  private void write() throws Exception {
    DistributedFileSystem fs = roles.fs();
    fs.enableErasureCodingPolicy("RS-3-2-1024k");
    fs.mkdirs(new Path("/ec"));
    fs.setErasureCodingPolicy(new Path("/ec"), "RS-3-2-1024k");
    for (int i = 0; i < 8; i++) {
      Path path = new Path(i < 5 ? "/ec/" + i : "/copied/" + i);
      // None as long as another: what is copied or rebuilt at the same time does not end at the same time.
      int length = (i < 5 ? 6 + 6 * i : 4 * (i - 4)) * MIB + i;
      try (OutputStream out = fs.create(path)) {
        digests.put(path, Data.copy(new Data.Source(i, length), out));
      }
    }
    await("all is there", () -> lacking(-1) == 0);
  }

  private void decommission() throws Exception {
    write();
    int leaving = fullest();
    long all = lacking(leaving);
    check(all > 2, "the leaving DataNode holds " + all + " blocks");
    say(leaving);
    await("some of its blocks are elsewhere", () -> lacking(leaving) < all);
    equal("DECOMMISSION_INPROGRESS", state(leaving), "state in the middle");
    check(lacking(leaving) > 0, "it is over too soon");
    restart(NODES);
    await("the DataNode is decommissioned", () -> state(leaving).equals("DECOMMISSIONED"));
    equal(0L, lacking(leaving), "blocks that others lack");
    roles.killDataNode(leaving);
    readAll();
    roles.startDataNode(leaving);
    say(-1);
    await("all serve", () -> state(leaving).equals("NORMAL"));
  }

  private void repair() throws Exception {
    await("nothing is there that is not needed", this::settled);
    int dead = fullest();
    long all = lacking(dead);
    check(all > 2, "the DataNode that is to die holds " + all + " blocks");
    roles.killDataNode(dead);
    await("the DataNode is dead", () -> roles.live() == NODES - 1);
    await("some of them are whole again", () -> lacking(dead) < all);
    check(lacking(dead) > 0, "it is over too soon");
    restart(NODES - 1);
    await("all are whole again", () -> lacking(dead) == 0);
    readAll();
    roles.startDataNode(dead);
    await("all serve", () -> roles.live() == NODES);
  }

  /** The order goes to a DataNode that has died, and is not known to the next NameNode. */
  private void recovery() throws Exception {
    Path path = new Path("/copied/open");
    Configuration conf = roles.conf();
    conf.set("dfs.client.block.write.replace-datanode-on-failure.policy", "NEVER");
    FileSystem writer = FileSystem.newInstance(roles.fs().getUri(), conf);
    FSDataOutputStream out = writer.create(path);
    out.write(new byte[MIB]);
    out.hflush();
    LocatedBlock open =
        roles.fs().getClient().getLocatedBlocks(path.toString(), 0, 1).getLastLocatedBlock();
    List<Integer> places = Arrays.stream(open.getLocations()).map(roles::indexOf).toList();
    for (int place : places) {
      roles.killDataNode(place);
    }
    long ordered = System.nanoTime();
    check(!roles.fs().recoverLease(path), "nobody is there to recover the block");
    for (int place : places) {
      roles.startDataNode(place);
    }
    restart(NODES);
    await("the file is closed", () -> roles.fs().recoverLease(path));
    long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - ordered);
    // An order that is under way is repeated after thirty heartbeats of a second.
    check(seconds < 25, "recovered after " + seconds + " s");
    equal((long) MIB, roles.fs().getFileStatus(path).getLen(), "length");
  }

  /** Who watches the tree goes on with the stream that it has had before. */
  private void watched() throws Exception {
    DistributedFileSystem fs = roles.fs();
    DFSInotifyEventInputStream stream = fs.getInotifyEventStream();
    fs.mkdirs(new Path("/seen"));
    equal(List.of("/seen"), made(stream, "/seen"), "before");
    // The NameNode stops with nothing new, and then with something.
    restartUnder(fs);
    fs.mkdirs(new Path("/later"));
    equal(List.of("/later"), made(stream, "/later"), "after a start");
    fs.mkdirs(new Path("/unseen"));
    restartUnder(fs);
    fs.mkdirs(new Path("/last"));
    equal(List.of("/unseen", "/last"), made(stream, "/last"), "after another one");
  }

  /** More changes than the NameNode's log keeps, which who watched before has not seen when the NameNode goes. */
  private void watchedLong() throws Exception {
    DistributedFileSystem fs = roles.fs();
    DFSInotifyEventInputStream stream = fs.getInotifyEventStream();
    fs.mkdirs(new Path("/begin"));
    equal(List.of("/begin"), made(stream, "/begin"), "before");
    long begin = fs.getClient().getNamenode().getCurrentEditLogTxid();
    List<String> wanted = new ArrayList<>();
    for (int i = 0; i < WRITERS; i++) {
      wanted.add("/many/" + i);
      for (int j = 0; j < CHANGES / WRITERS; j++) {
        wanted.add("/many/" + i + "/" + j);
      }
    }
    for (int i = 0; i < WRITERS; i++) {
      fs.mkdirs(new Path("/many/" + i));
    }
    wanted.add("/many");
    ExecutorService pool = Executors.newFixedThreadPool(WRITERS);
    try {
      List<Future<Void>> made = new ArrayList<>();
      for (int i = 0; i < WRITERS; i++) {
        String dir = "/many/" + i + "/";
        made.add(
            pool.submit(
                () -> {
                  for (int j = 0; j < CHANGES / WRITERS; j++) {
                    fs.mkdirs(new Path(dir + j));
                  }
                  return null;
                }));
      }
      for (Future<Void> one : made) {
        one.get();
      }
    } finally {
      pool.shutdown();
    }
    wanted.sort(null);
    for (String end : List.of("/killed", "/stopped")) {
      fs.mkdirs(new Path(end));
      if (end.equals("/killed")) {
        roles.killNameNode();
      } else {
        roles.stopNameNode();
      }
      startUnder(fs);
      // Who has read up to the change before them, in a stream of its own: nothing is missing, and nothing comes twice.
      List<String> told = made(fs.getInotifyEventStream(begin), end);
      told.removeAll(List.of("/killed", "/stopped"));
      told.sort(null);
      equal(wanted, told, "all that was made, up to " + end);
    }
    List<String> told = made(stream, "/stopped");
    equal(wanted.size() + 2, told.size(), "what the stream from before tells");
  }

  /** Kills the NameNode and starts it again; {@code fs} stays open. */
  private void restartUnder(DistributedFileSystem fs) throws Exception {
    roles.killNameNode();
    startUnder(fs);
  }

  private void startUnder(DistributedFileSystem fs) throws Exception {
    roles.startNameNode();
    Target.waitForLive(fs, NODES);
    await("writes are allowed", () -> !Target.isStarting(fs));
  }

  /** The directories that {@code stream} tells of, up to {@code end}. */
  private static List<String> made(DFSInotifyEventInputStream stream, String end) throws Exception {
    List<String> paths = new ArrayList<>();
    IOException last = null;
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!paths.contains(end)) {
      if (System.nanoTime() > deadline) {
        throw new IOException("told only of " + paths, last);
      }
      EventBatch batch;
      try {
        batch = stream.poll(1, TimeUnit.SECONDS);
      } catch (IOException e) {
        // Its connection may have ended with the NameNode.
        last = e;
        continue;
      }
      for (Event event : batch == null ? new Event[0] : batch.getEvents()) {
        if (event instanceof Event.CreateEvent create) {
          paths.add(create.getPath());
        }
      }
    }
    return paths;
  }

  private void restart(int live) throws Exception {
    roles.killNameNode();
    FileSystem.closeAll();
    roles.startNameNode();
    roles.waitReady(live);
  }

  private void readAll() throws Exception {
    FileSystem.closeAll();
    for (Map.Entry<Path, String> e : digests.entrySet()) {
      try (FSDataInputStream in = roles.fs().open(e.getKey())) {
        equal(e.getValue(), Data.digest(in), "SHA-256 of " + e.getKey());
      }
    }
  }

  /** Has one DataNode decommissioned; -1 for none. */
  private void say(int leaving) throws Exception {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < NODES; i++) {
      String state = i == leaving ? ",\"adminState\":\"DECOMMISSIONED\"" : "";
      lines.add("{\"hostName\":\"127.0.0.1\",\"port\":" + roles.ports(i)[0] + state + "}");
    }
    Files.writeString(hosts.toPath(), "[" + String.join(",", lines) + "]");
    roles.fs().refreshNodes();
  }

  private String state(int node) throws IOException {
    return Arrays.stream(roles.fs().getDataNodeStats())
        .filter(n -> roles.indexOf(n) == node)
        .findFirst()
        .map(n -> n.getAdminState().name())
        .orElse("UNKNOWN");
  }

  private List<LocatedBlock> blocks() throws IOException {
    List<LocatedBlock> all = new ArrayList<>();
    for (Path path : digests.keySet()) {
      String name = path.toUri().getPath();
      all.addAll(roles.fs().getClient().getLocatedBlocks(name, 0, Long.MAX_VALUE).getLocatedBlocks());
    }
    return all;
  }

  /** The DataNode that is needed for most blocks: of {@link #NODES}, one has more than the average of four. */
  private int fullest() throws IOException {
    int fullest = 0;
    for (int i = 1; i < NODES; i++) {
      if (lacking(i) > lacking(fullest)) {
        fullest = i;
      }
    }
    return fullest;
  }

  private boolean settled() throws IOException {
    return blocks().stream().allMatch(b -> b.getLocations().length == needed(b));
  }

  private static int needed(LocatedBlock block) {
    return block.isStriped() ? 5 : 3;
  }

  /** Blocks and groups of which DataNodes other than {@code without} have too few replicas or units. */
  private long lacking(int without) throws IOException {
    return blocks().stream()
        .filter(
            b -> {
              DatanodeInfo[] places = b.getLocations();
              long others = Arrays.stream(places).filter(n -> roles.indexOf(n) != without).count();
              return others < needed(b);
            })
        .count();
  }

  private static void await(String what, Runner.Condition condition) throws Exception {
    Runner.await(120, what, condition);
  }
}
