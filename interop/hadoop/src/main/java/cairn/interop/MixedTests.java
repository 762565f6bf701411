package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import cairn.interop.Mixed.Node;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedStripedBlock;
import org.apache.hadoop.hdfs.tools.DFSck;

/**
 * DataNodes of Cairn and of Hadoop under one NameNode, of either: a lost DataNode's units are rebuilt by both, from
 * sources of both, and disks change hands.
 */
final class MixedTests {
  private static final long MIB = 1 << 20;

  private final Main.Context x;
  private final Runner runner;
  private final Mixed mixed;
  private final String group;
  private final boolean byCairn;

  private MixedTests(Main.Context x, Mixed mixed, String group, boolean byCairn) {
    this.x = x;
    this.runner = x.runner();
    this.mixed = mixed;
    this.group = group;
    this.byCairn = byCairn;
  }

  static void run(Main.Context x) throws Exception {
    if (x.cairn() == null) {
      return;
    }
    for (boolean byCairn : new boolean[] {true, false}) {
      String group = "mixed/" + (byCairn ? "Cairn" : "Hadoop") + "'s NameNode/";
      if (!x.runner().wantsGroup(group)) {
        continue;
      }
      // Wide enough for the widest group and one node more, where a lost unit has to go.
      int ofEach = x.full() ? 5 : 3;
      File folder = new File(x.work(), byCairn ? "mixed-c" : "mixed-h");
      Map<String, String> keys = Mixed.hasty(x.keys());
      keys.put("dfs.datanode.peer.stats.enabled", "true");
      keys.put("dfs.datanode.outliers.report.interval", "1s");
      if (byCairn) {
        keys.put("dfs.namenode.slowpeer.collect.interval", "1s");
        keys.put("dfs.pipeline.slownode", "true");
      }
      try (Mixed mixed =
          new Mixed(byCairn, x.cairn(), folder, ofEach, keys)) {
        MixedTests t = new MixedTests(x, mixed, group, byCairn);
        t.rebuild();
        t.disks(false);
        t.disks(true);
        if (byCairn) {
          t.scrub();
          t.scannerPage();
          t.slow();
        } else {
          t.slowToCairn();
        }
      }
    }
  }

  /** A file and what is known of it. */
  private record Stored(Path path, String sha, int spare) {}

  private Stored store(String redundancy, int number, int spare) throws Exception {
    Path path = new Path("/" + redundancy, "f" + number);
    // Odd, and two stripes at least, so that every unit has bytes.
    String sha = FileTests.store(mixed.fs(), path, number, 7 * MIB + 4097L * number, 128 * MIB);
    return new Stored(path, sha, spare);
  }

  /** The DataNodes of the first block of a file, by unit; replicas in their order. */
  private Map<Integer, Node> places(Path path) throws IOException {
    return places(mixed.fs().getClient().getLocatedBlocks(path.toUri().getPath(), 0, 1).get(0));
  }

  /** Those of the block that is being written. */
  private Map<Integer, Node> placesOfLast(Path path) throws IOException {
    return places(mixed.fs().getClient().getLocatedBlocks(path.toUri().getPath(), 0, 1).getLastLocatedBlock());
  }

  private Map<Integer, Node> places(LocatedBlock block) {
    Map<Integer, Node> places = new TreeMap<>();
    DatanodeInfo[] locations = block.getLocations();
    for (int i = 0; i < locations.length; i++) {
      int unit = block instanceof LocatedStripedBlock s ? s.getBlockIndices()[i] : i;
      Node node = mixed.nodeOf(locations[i]);
      if (node != null) {
        places.put(unit, node);
      }
    }
    return places;
  }

  /**
   * The SHA-256 of a file. When fewer units than the data has answer in time, Hadoop's {@code StripeReader.readStripe}
   * closes the stream, and {@code DFSStripedInputStream.readWithStrategy} then tries again with the closed one: its
   * decoder is null, and the real reason stands only in the client's log (HDFS-17893, mended after 3.5.0). What Hadoop
   * means to do there is done here: the file is read once more.
   */
  private String digest(Path path) throws IOException {
    try {
      return digestOnce(path);
    } catch (NullPointerException e) {
      System.out.println("Hadoop's client failed by itself, once more: " + e.getMessage());
      return digestOnce(path);
    }
  }

  private String digestOnce(Path path) throws IOException {
    // A client of its own: nothing is known from before.
    try (FileSystem fs = FileSystem.newInstance(mixed.conf());
        FSDataInputStream in = fs.open(path)) {
      return Data.digest(in);
    }
  }

  private String fsck() throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Configuration conf = mixed.conf();
    new DFSck(conf, new PrintStream(out, true, StandardCharsets.UTF_8))
        .run(new String[] {"/", "-files", "-blocks", "-locations"});
    return out.toString(StandardCharsets.UTF_8);
  }

  private void rebuild() {
    runner.test(
        group + "a lost DataNode's units are rebuilt by both, from sources of both",
        () -> {
          DistributedFileSystem fs = mixed.fs();
          Map<String, Integer> spare = new LinkedHashMap<>(Map.of("RS-3-2-1024k", 2, "XOR-2-1-1024k", 1));
          if (x.full()) {
            spare.put("RS-6-3-1024k", 3);
          }
          for (String policy : spare.keySet()) {
            fs.enableErasureCodingPolicy(policy);
            fs.mkdirs(new Path("/" + policy));
            fs.setErasureCodingPolicy(new Path("/" + policy), policy);
          }
          fs.mkdirs(new Path("/3x"));
          spare.put("3x", 2);
          List<Stored> files = new ArrayList<>();
          for (Map.Entry<String, Integer> e : spare.entrySet()) {
            for (int i = 0; i < 6; i++) {
              files.add(store(e.getKey(), i, e.getValue()));
            }
          }
          long before = mixed.reconstructionsByHadoop();
          // One of each implementation, one after the other: what is left has to take their units.
          Map<Boolean, Integer> rebuilt = new TreeMap<>(Map.of(true, 0, false, 0));
          boolean sourcesCross = false;
          for (boolean cairnDies : new boolean[] {true, false}) {
            Node victim = mixed.running().stream().filter(n -> n.byCairn == cairnDies).findFirst().get();
            Map<Path, Map<Integer, Node>> old = new LinkedHashMap<>();
            for (Stored file : files) {
              old.put(file.path, places(file.path));
            }
            mixed.kill(victim);
            awaitWhole(files, old, victim);
            for (Stored file : files) {
              for (Map.Entry<Integer, Node> now : places(file.path).entrySet()) {
                Map<Integer, Node> then = old.get(file.path);
                boolean isStriped = !file.path.toString().contains("3x");
                if (isStriped && then.get(now.getKey()) == victim) {
                  Node by = now.getValue();
                  rebuilt.merge(by.byCairn, 1, Integer::sum);
                  sourcesCross |=
                      then.values().stream().anyMatch(n -> n != victim && n.byCairn != by.byCairn);
                }
              }
              equal(file.sha, digest(file.path), "SHA-256 of " + file.path + " without " + victim);
            }
            // It comes back: there is room for the next one's units, and a surplus to remove.
            revive(victim);
          }
          // Hadoop's NameNode names a surplus unit to readers until it hears that it is gone.
          for (Stored file : files) {
            awaitLocations(file, wanted(file, places(file.path)));
          }
          check(rebuilt.get(true) > 0, "Cairn's DataNodes rebuilt nothing: " + rebuilt);
          check(rebuilt.get(false) > 0, "Hadoop's DataNodes rebuilt nothing: " + rebuilt);
          check(sourcesCross, "no unit was rebuilt from the other implementation's units");
          check(mixed.reconstructionsByHadoop() > before, "Hadoop counts no reconstruction");
          if (!byCairn) {
            String fsck = fsck();
            check(fsck.contains("is HEALTHY"), fsck);
          }
          // What was rebuilt has to serve: as many nodes go as each file may lose, of both kinds.
          List<Node> gone = new ArrayList<>();
          for (boolean cairnDies : new boolean[] {false, true}) {
            Node next = mixed.running().stream().filter(n -> n.byCairn == cairnDies).skip(1).findFirst().get();
            mixed.kill(next);
            gone.add(next);
            for (Stored file : files) {
              if (file.spare >= gone.size()) {
                equal(file.sha, digest(file.path), "SHA-256 of " + file.path + " without " + gone);
              }
            }
          }
          for (Node node : gone) {
            revive(node);
          }
        });
  }

  private void revive(Node node) throws Exception {
    start(node, node.byCairn);
  }

  private void start(Node node, boolean asCairn) throws Exception {
    if (asCairn) {
      mixed.startCairn(node);
    } else {
      mixed.startHadoop(List.of(node));
    }
    mixed.awaitReports();
  }

  /** How many units or replicas a file should have whose units or replicas are at {@code places}. */
  private static int wanted(Stored file, Map<Integer, Node> places) {
    // A DataNode that came back may have one too many.
    return file.path.toString().startsWith("/3x") ? 3 : places.size();
  }

  private void awaitLocations(Stored file, int count) throws Exception {
    String path = file.path.toUri().getPath();
    Runner.await(
        count + " locations of " + file.path,
        () -> mixed.fs().getClient().getLocatedBlocks(path, 0, 1).get(0).getLocations().length == count);
  }

  /** Waits until every file has as many units or replicas as it had, none of them on {@code victim}. */
  private void awaitWhole(List<Stored> files, Map<Path, Map<Integer, Node>> old, Node victim)
      throws Exception {
    for (Stored file : files) {
      int wanted = wanted(file, old.get(file.path));
      Runner.await(
          90,
          () -> file.path + " is whole: it was on " + old.get(file.path) + ", is on " + places(file.path),
          () -> places(file.path).size() >= wanted && !places(file.path).containsValue(victim));
    }
  }

  /** A DataNode of one implementation goes on with the disk that one of the other has written. */
  private void disks(boolean toCairn) {
    String what = toCairn ? "Hadoop's disk is taken over by Cairn" : "Cairn's disk is taken over by Hadoop";
    runner.test(
        group + what,
        () -> {
          DistributedFileSystem fs = mixed.fs();
          Node node = mixed.running().stream().filter(n -> n.byCairn != toCairn).findFirst().get();
          // Single replicas: what reads back comes from that disk alone.
          List<Stored> here = new ArrayList<>();
          for (int i = 0; here.size() < 2; i++) {
            check(i < 100, "no file came to " + node);
            Path path = new Path("/1x-" + toCairn, "f" + i);
            String sha;
            try (OutputStream out = fs.create(path, true, 4096, (short) 1, 4 * MIB)) {
              sha = Data.copy(new Data.Source(i, 3 * MIB + i), out);
            }
            if (places(path).containsValue(node)) {
              here.add(new Stored(path, sha, 0));
            }
          }
          mixed.kill(node);
          start(node, toCairn);
          for (Stored file : here) {
            Runner.await(file.path + " is at " + node, () -> places(file.path).containsValue(node));
            equal(file.sha, digest(file.path), "SHA-256 of " + file.path);
          }
          // It takes new blocks as well.
          Stored file = store("3x", 100, 2);
          equal(file.sha, digest(file.path), "SHA-256 of a new file");
        });
  }

  /** The page of each implementation with a place for each value; hours are told at some times only. */
  private void scannerPage() {
    runner.test(
        group + "the block scanner's page is Hadoop's",
        () -> {
          Map<Boolean, String> pages = new TreeMap<>();
          for (DatanodeInfo info : mixed.fs().getDataNodeStats(DatanodeReportType.LIVE)) {
            URL url = new URL("http://127.0.0.1:" + info.getInfoPort() + "/blockScannerReport");
            String page;
            try (InputStream in = url.openStream()) {
              page = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            }
            int width = page.lines().filter(l -> l.contains(" : ")).findFirst().get().length();
            page =
                page.replaceAll("volume \\S+ with base path \\S+", "volume ID with base path DIR")
                    .replaceAll("(?m)^Hours .*\\n", "")
                    .replaceAll("(?m)( *): +\\S+$", "$1: VALUE");
            pages.put(mixed.nodeOf(info).byCairn, width + "\n" + page);
          }
          equal(pages.get(false), pages.get(true), "Cairn's page beside Hadoop's");
        });
  }

  /** What Hadoop's DataNodes report of a slow one, on ports of one address. */
  private void slow() {
    runner.test(
        group + "who is slow to Hadoop's DataNodes is listed by dfsadmin, and left out by writers",
        () -> {
          check(slowNames().isEmpty(), "slow before: " + slowNames());
          List<Node> reporters = mixed.running().stream().filter(n -> !n.byCairn).toList();
          Node victim = mixed.running().stream().filter(n -> n.byCairn).findFirst().get();
          DatanodeInfo slow = known(victim);
          String name = slow.getInfoAddr();
          for (Node reporter : reporters) {
            mixed.callSlow(reporter, name);
          }
          String bean = "NameNodeStatus";
          Runner.await(
              30,
              () -> "all report " + name + ": " + mixed.bean(bean),
              () ->
                  mixed.bean(bean).path("SlowPeersReport").asText().split("ReportingNode\":", -1).length
                      == reporters.size() + 1);
          equal(List.of(slow.getXferAddr()), slowNames(), "DataNodes that dfsadmin lists");
          String report = mixed.bean(bean).path("SlowPeersReport").asText();
          check(report.contains("\"SlowNode\":\"" + name + "\""), report);
          check(report.contains("\"ReportedLatency\":50.0"), report);
          leftOutByWriters(victim);
        });
  }

  /** A DataNode of Cairn calls itself slow in each acknowledgement, and Hadoop's client goes on without it. */
  private void leftOutByWriters(Node slow) throws Exception {
    Path path = new Path("/left-out");
    int all = mixed.running().size();
    try (var out = (HdfsDataOutputStream) mixed.fs().create(path, true, 4096, (short) all, 4 * MIB)) {
      out.write(1);
      out.hflush();
      check(placesOfLast(path).containsValue(slow), slow + " is not among " + placesOfLast(path));
      Runner.await(
          30,
          () -> "a pipeline without " + slow + ": " + placesOfLast(path),
          () -> {
            out.write(1);
            out.hflush();
            return out.getCurrentBlockReplication() < all;
          });
      equal(all - 1, out.getCurrentBlockReplication(), "DataNodes that are left");
      check(!placesOfLast(path).containsValue(slow), slow + " is still among " + placesOfLast(path));
    }
  }

  /** What Cairn's DataNodes report to Hadoop's NameNode of one of them that takes packets late. */
  private void slowToCairn() {
    runner.test(
        group + "who is slow to Cairn's DataNodes is listed by dfsadmin",
        () -> {
          check(slowNames().isEmpty(), "slow before: " + slowNames());
          Map<String, String> keys =
              Map.of(
                  "dfs.datanode.min.outlier.detection.nodes", "3",
                  "dfs.datanode.peer.metrics.min.outlier.detection.samples", "10",
                  "dfs.datanode.slowpeer.low.threshold.ms", "20",
                  // Packets wait at their sender soon.
                  "dfs.datanode.transfer.socket.send.buffer.size", "16384",
                  "dfs.datanode.transfer.socket.recv.buffer.size", "16384");
          List<Node> reporters = mixed.running().stream().filter(n -> n.byCairn).toList();
          Node slow = reporters.get(0);
          for (Node node : reporters) {
            Map<String, String> own = new TreeMap<>(keys);
            if (node == slow) {
              own.put("dfs.datanode.data.write.bandwidthPerSec", String.valueOf(MIB));
            }
            mixed.kill(node);
            mixed.startCairn(node, own);
            mixed.awaitReports();
          }
          String name = "\"SlowNode\":\"" + known(slow).getInfoAddr() + "\"";
          int[] files = {0};
          Runner.await(
              120,
              () -> slow + " is called slow after " + files[0] + " files: " + slowPeers(),
              () -> {
                Path path = new Path("/slow/f" + files[0]++);
                try (OutputStream out = mixed.fs().create(path, true, 4096, (short) 2, 4 * MIB)) {
                  out.write(new byte[(int) MIB]);
                }
                return slowPeers().contains(name);
              });
          // Each report holds for three seconds, and goes on. Of DataNodes at one address Hadoop lists any.
          Runner.await("one in dfsadmin", () -> slowNames().size() == 1);
          equal(2, slowPeers().split("SlowNode", -1).length, "pieces of " + slowPeers());
        });
  }

  /** What the NameNode knows of a DataNode that runs. */
  private DatanodeInfo known(Node node) throws IOException {
    for (DatanodeInfo info : mixed.fs().getDataNodeStats(DatanodeReportType.LIVE)) {
      if (mixed.nodeOf(info) == node) {
        return info;
      }
    }
    throw new IOException("the NameNode does not know " + node);
  }

  private String slowPeers() throws IOException {
    return mixed.bean("NameNodeStatus").path("SlowPeersReport").asText();
  }

  /** The addresses of {@code dfsadmin -report -slownodes}. */
  private List<String> slowNames() throws Exception {
    String[] words = {"-report", "-slownodes"};
    Shell.Result result = Shell.run(mixed.conf(), null, "admin", words, new byte[0]);
    equal(0, result.code(), "status of dfsadmin -report -slownodes: " + result.err());
    List<String> names = new ArrayList<>();
    for (String line : result.text().split("\n")) {
      if (line.startsWith("Name: ")) {
        names.add(line.split(" ")[1]);
      }
    }
    return names;
  }

  /** Wrong bytes on a disk of Hadoop's, with CRCs that fit: nobody there can know. */
  private void scrub() {
    runner.test(
        group + "an altered unit on Hadoop's disk is found in the background",
        () -> {
          DistributedFileSystem fs = mixed.fs();
          fs.enableErasureCodingPolicy("RS-3-2-1024k");
          fs.mkdirs(new Path("/RS-3-2-1024k"));
          fs.setErasureCodingPolicy(new Path("/RS-3-2-1024k"), "RS-3-2-1024k");
          Stored file = store("RS-3-2-1024k", 200, 2);
          Map<Integer, Node> before = places(file.path);
          int unit =
              before.entrySet().stream().filter(e -> !e.getValue().byCairn).findFirst().get().getKey();
          LocatedBlock block =
              fs.getClient().getLocatedBlocks(file.path.toUri().getPath(), 0, 1).get(0);
          forge(before.get(unit).folder, block.getBlock().getBlockId() + unit);
          mixed.reconfigure("cairn.namenode.scrub.period", "1");
          Runner.await(
              90,
              () -> "unit " + unit + " is elsewhere than before: " + places(file.path),
              () -> {
                Node now = places(file.path).get(unit);
                return now != null && now != before.get(unit);
              });
          equal(file.sha, digest(file.path), "SHA-256 after the repair");
        });
  }

  /** Changes a byte of an internal block, and its chunk's CRC to fit. */
  private static void forge(File folder, long id) throws IOException {
    List<java.nio.file.Path> files;
    try (Stream<java.nio.file.Path> all = Files.walk(folder.toPath())) {
      files = all.filter(f -> f.getFileName().toString().startsWith("blk_" + id)).sorted().toList();
    }
    equal(2, files.size(), "files of " + id);
    int chunk = 512;
    byte[] data = Files.readAllBytes(files.get(0));
    byte[] meta = Files.readAllBytes(files.get(1));
    data[chunk + 100] ^= 0x20;
    CRC32C crc = new CRC32C();
    crc.update(data, chunk, chunk);
    ByteBuffer.wrap(meta).putInt(7 + 4, (int) crc.getValue());
    Files.write(files.get(0), data);
    Files.write(files.get(1), meta);
  }
}
