package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.protocol.SystemErasureCodingPolicies;
import org.apache.hadoop.io.erasurecode.ECSchema;

/**
 * Files of every awkward length in every redundancy: written and read whole and by position, read again after SIGKILL
 * of the whole cluster, and with any m DataNodes gone.
 */
final class FileTests {
  private static final int MIB = 1 << 20;

  /** A block size small enough that a group ends within a few MiB: two cells of the built-in policies. */
  private static final long SMALL_BLOCK = 2 * MIB;

  private static final long BLOCK = 128 * MIB;
  /** Of a GiB with {@code --full}. */
  private static final String LARGE = "large";

  /** One stored file. */
  record Stored(Path path, long seed, long length, String sha) {}

  private final Main.Context x;
  private final Runner runner;
  private final ClusterProcess cluster;
  private final Map<String, Stored> files = new LinkedHashMap<>();
  private final Map<String, Integer> locations = new HashMap<>();
  private long nextSeed = 1;

  private FileTests(Main.Context x, ClusterProcess cluster) {
    this.x = x;
    this.runner = x.runner();
    this.cluster = cluster;
  }

  static void run(Main.Context x) throws Exception {
    if (!x.runner().wantsGroup("files/")) {
      return;
    }
    try (ClusterProcess cluster =
        new ClusterProcess(x.target(), new File(x.work(), "files"), 15, 5, x.keys())) {
      FileTests t = new FileTests(x, cluster);
      t.prepare();
      t.writeAll();
      t.readAfterKill();
      t.readWithLosses();
    }
  }

  /** Cairn's own built-in policy; on Hadoop, one that an administrator adds. */
  private static final ErasureCodingPolicy SMALL_CELLS =
      new ErasureCodingPolicy(new ECSchema("rs", 6, 3), 64 * 1024);

  /** The built-in policies by name, and null for three-fold replication. */
  static Map<String, ErasureCodingPolicy> redundancies() {
    Map<String, ErasureCodingPolicy> all = new LinkedHashMap<>();
    SystemErasureCodingPolicies.getPolicies().forEach(p -> all.put(p.getName(), p));
    all.put(SMALL_CELLS.getName(), SMALL_CELLS);
    all.put("3x", null);
    return all;
  }

  /** Makes one folder for each redundancy, with its policy enabled and set. */
  static void makeFolders(DistributedFileSystem fs, String root) throws IOException {
    if (fs.getAllErasureCodingPolicies().stream()
        .noneMatch(p -> p.getPolicy().getName().equals(SMALL_CELLS.getName()))) {
      fs.addErasureCodingPolicies(new ErasureCodingPolicy[] {SMALL_CELLS});
    }
    for (Map.Entry<String, ErasureCodingPolicy> r : redundancies().entrySet()) {
      Path dir = new Path(root, r.getKey());
      fs.mkdirs(dir);
      if (r.getValue() != null) {
        fs.enableErasureCodingPolicy(r.getKey());
        fs.setErasureCodingPolicy(dir, r.getKey());
      }
    }
  }

  private void prepare() throws Exception {
    makeFolders(cluster.fs(), "/files");
  }

  private static Map<String, Long> lengths(ErasureCodingPolicy policy) {
    // Replicated files have no cells; packets and blocks are where their lengths matter.
    long cell = policy == null ? 64 * 1024 : policy.getCellSize();
    long k = policy == null ? 2 : policy.getNumDataUnits();
    long group = policy == null ? SMALL_BLOCK : k * SMALL_BLOCK;
    Map<String, Long> l = new LinkedHashMap<>();
    l.put("0 B", 0L);
    l.put("1 B", 1L);
    l.put("cell-1", cell - 1);
    l.put("cell", cell);
    l.put("cell+1", cell + 1);
    l.put("stripe-1", k * cell - 1);
    l.put("stripe", k * cell);
    l.put("stripe+1", k * cell + 1);
    l.put("group+1", group + 1);
    l.put("64 MiB", 64L * MIB);
    return l;
  }

  private void writeAll() {
    redundancies()
        .forEach(
            (name, policy) ->
                lengths(policy)
                    .forEach(
                        (label, length) -> {
                          long block = label.equals("64 MiB") ? BLOCK : SMALL_BLOCK;
                          write(name, label, length, block);
                        }));
    for (String name : List.of("RS-6-3-1024k", "3x")) {
      write(name, LARGE, x.full() ? 1L << 30 : 300L << 20, BLOCK);
    }
  }

  private void write(String redundancy, String label, long length, long block) {
    long seed = nextSeed++;
    runner.test(
        "files/write and read/" + redundancy + "/" + label,
        () -> {
          Path path = new Path("/files/" + redundancy, label.replace(' ', '-'));
          DistributedFileSystem fs = cluster.fs();
          String sha = store(fs, path, seed, length, block);
          Stored s = new Stored(path, seed, length, sha);
          equal(length, fs.getFileStatus(path).getLen(), "length by the NameNode");
          readWhole(s);
          readPieces(s);
          files.put(redundancy + "/" + label, s);
          locations.put(redundancy + "/" + label, locationCount(fs, path));
        });
  }

  /** Writes {@code length} bytes of sequence {@code seed} and returns their digest. */
  static String store(DistributedFileSystem fs, Path path, long seed, long length, long block)
      throws IOException {
    try (OutputStream out = fs.create(path, true, 64 * 1024, (short) 3, block)) {
      return Data.copy(new Data.Source(seed, length), out);
    }
  }

  private void readWhole(Stored s) throws IOException {
    try (FSDataInputStream in = cluster.fs().open(s.path)) {
      equal(s.sha, Data.digest(in), "SHA-256 of " + s.path);
    }
  }

  /** Reads by position around every place where a cell, a packet or a block may end. */
  private void readPieces(Stored s) throws IOException {
    if (s.length == 0 || s.length > 16L * MIB) {
      return;
    }
    byte[] all = new Data.Source(s.seed, s.length).readAllBytes();
    Random random = new Random(s.seed);
    try (FSDataInputStream in = cluster.fs().open(s.path)) {
      for (int i = 0; i < 12; i++) {
        int edge = (int) (random.nextInt((int) (s.length / (64 * 1024)) + 1) * 64L * 1024);
        int from = Math.max(0, Math.min((int) s.length - 1, edge - random.nextInt(100)));
        int count = Math.min((int) s.length - from, 1 + random.nextInt(200_000));
        byte[] piece = new byte[count];
        in.readFully(from, piece);
        check(
            java.util.Arrays.equals(all, from, from + count, piece, 0, count),
            s.path + ": bytes " + from + ".." + (from + count) + " differ");
      }
    }
  }

  private static LocatedBlocks located(DistributedFileSystem fs, Path path) throws IOException {
    return fs.getClient().getLocatedBlocks(path.toUri().getPath(), 0, Long.MAX_VALUE);
  }

  private static int locationCount(DistributedFileSystem fs, Path path) throws IOException {
    int n = 0;
    for (LocatedBlock b : located(fs, path).getLocatedBlocks()) {
      n += b.getLocations().length;
    }
    return n;
  }

  private void readAfterKill() {
    if (!runner.wantsGroup("files/after kill -9")) {
      return;
    }
    runner.test(
        "files/after kill -9/the cluster starts again and finds every internal block",
        () -> {
          cluster.kill();
          cluster.start();
          for (Map.Entry<String, Stored> f : files.entrySet()) {
            int wanted = locations.get(f.getKey());
            Runner.await(
                f.getKey() + ": locations come back",
                () -> locationCount(cluster.fs(), f.getValue().path) >= wanted);
          }
        });
    files.forEach(
        (name, s) -> runner.test("files/after kill -9/" + name, () -> readWhole(s)));
  }

  private void readWithLosses() throws Exception {
    Random random = new Random(20);
    lose("RS-3-2-1024k", combinations(5, 2), random);
    lose("RS-6-3-1024k", sample(9, 3, 20, random), random);
    lose("RS-10-4-1024k", sample(14, 4, 20, random), random);
    lose("XOR-2-1-1024k", combinations(3, 1), random);
    lose("RS-LEGACY-6-3-1024k", sample(9, 3, 20, random), random);
    lose(SMALL_CELLS.getName(), sample(9, 3, 20, random), random);
    lose("3x", combinations(3, 2), random);
  }

  /** Stops the nodes that hold each of {@code patterns} of the units of one group, and reads a set of files. */
  private void lose(String redundancy, List<Set<Integer>> patterns, Random random)
      throws Exception {
    if (!runner.wantsGroup("files/lost/" + redundancy)) {
      return;
    }
    List<Stored> set = new ArrayList<>();
    for (String label : List.of("1 B", "cell+1", "stripe-1", "stripe+1", "group+1")) {
      Stored s = files.get(redundancy + "/" + label);
      if (s != null) {
        set.add(s);
      }
    }
    // Those whose first group has bytes in every unit; the pattern is of another file's group each time, so that the
    // set as a whole meets many more.
    List<Stored> full = set.stream().filter(s -> !s.path.getName().matches("1-B|cell.1")).toList();
    Set<Integer> down = new HashSet<>();
    for (Set<Integer> units : patterns) {
      Stored of = full.isEmpty() ? null : full.get(random.nextInt(full.size()));
      runner.test(
          "files/lost/" + redundancy + "/units " + units,
          () -> {
            check(of != null, "the files were not written");
            Set<Integer> gone = holders(of, units);
            equal(units.size(), gone.size(), "DataNodes that hold the units");
            stopExactly(gone, down);
            FileSystem.closeAll();
            for (Map.Entry<String, Stored> f : files.entrySet()) {
              boolean huge = f.getKey().endsWith("/" + LARGE);
              // Once is enough for the huge one, unless all is wanted.
              boolean turn = !huge || x.full() || units.equals(patterns.get(0));
              if (f.getKey().startsWith(redundancy + "/") && turn) {
                readWhole(f.getValue());
              }
            }
            readPieces(of);
          });
    }
    tooMany(redundancy, down);
    stopExactly(Set.of(), down);
  }

  /** One unit more than the parity: the read must fail, not make bytes up. */
  private void tooMany(String redundancy, Set<Integer> down) {
    ErasureCodingPolicy policy = redundancies().get(redundancy);
    if (policy == null) {
      return;
    }
    runner.test(
        "files/lost/" + redundancy + "/one unit too many is an error",
        () -> {
          Stored s = files.get(redundancy + "/stripe+1");
          check(s != null, "the file was not written");
          Set<Integer> units = new TreeSet<>();
          for (int i = 0; i <= policy.getNumParityUnits(); i++) {
            units.add(i);
          }
          stopExactly(holders(s, units), down);
          FileSystem.closeAll();
          try {
            readWhole(s);
          } catch (IOException | NullPointerException e) {
            // Hadoop's client trips over a missing decoder of its own where it should complain.
            return;
          }
          throw new AssertionError("read a file of which too little is left");
        });
  }

  /** The nodes with the given units (for a replicated block: the given replicas) of the first group of a file. */
  private Set<Integer> holders(Stored s, Set<Integer> units) throws IOException {
    LocatedBlock block = located(cluster.fs(), s.path).get(0);
    DatanodeInfo[] nodes = block.getLocations();
    Set<Integer> found = new TreeSet<>();
    for (int i = 0; i < nodes.length; i++) {
      int unit =
          block instanceof LocatedStripedBlock striped ? striped.getBlockIndices()[i] : i;
      if (units.contains(unit)) {
        found.add(cluster.indexOf(nodes[i]));
      }
    }
    return found;
  }

  private void stopExactly(Set<Integer> wanted, Set<Integer> down) throws Exception {
    for (int i : wanted) {
      if (!down.contains(i)) {
        cluster.killDataNode(i);
        down.add(i);
      }
    }
    long since = System.currentTimeMillis();
    Set<Integer> back = new HashSet<>(down);
    back.removeAll(wanted);
    for (int i : back) {
      cluster.startDataNode(i);
      down.remove(i);
    }
    long end = System.nanoTime() + 30_000_000_000L;
    while (!back.isEmpty()) {
      for (DatanodeInfo d : cluster.fs().getDataNodeStats(DatanodeReportType.LIVE)) {
        if (d.getLastUpdate() > since) {
          back.remove(cluster.indexOf(d));
        }
      }
      check(System.nanoTime() < end, "DataNodes " + back + " do not report after their restart");
      Thread.sleep(20);
    }
  }

  /** Every set of {@code m} of the numbers below {@code n}. */
  static List<Set<Integer>> combinations(int n, int m) {
    List<Set<Integer>> all = new ArrayList<>();
    for (int mask = 0; mask < 1 << n; mask++) {
      if (Integer.bitCount(mask) == m) {
        Set<Integer> s = new TreeSet<>();
        for (int i = 0; i < n; i++) {
          if ((mask >> i & 1) == 1) {
            s.add(i);
          }
        }
        all.add(s);
      }
    }
    return all;
  }

  /** {@code count} different sets of {@code m} of the numbers below {@code n}. */
  static List<Set<Integer>> sample(int n, int m, int count, Random random) {
    List<Set<Integer>> all = combinations(n, m);
    Set<Set<Integer>> some = new LinkedHashSet<>();
    while (some.size() < count) {
      some.add(all.get(random.nextInt(all.size())));
    }
    return new ArrayList<>(some);
  }
}
