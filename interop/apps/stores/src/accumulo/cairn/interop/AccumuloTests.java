package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.accumulo.core.client.BatchWriter;
import org.apache.accumulo.core.client.Scanner;
import org.apache.accumulo.core.client.admin.CloneConfiguration;
import org.apache.accumulo.core.client.admin.CompactionConfig;
import org.apache.accumulo.core.client.admin.NewTableConfiguration;
import org.apache.accumulo.core.client.admin.TableOperations;
import org.apache.accumulo.core.client.rfile.RFile;
import org.apache.accumulo.core.client.rfile.RFileWriter;
import org.apache.accumulo.core.data.Key;
import org.apache.accumulo.core.data.Mutation;
import org.apache.accumulo.core.data.Range;
import org.apache.accumulo.core.data.TabletId;
import org.apache.accumulo.core.data.Value;
import org.apache.accumulo.core.security.Authorizations;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.io.Text;

/** Accumulo at work, on copied and on erasure coded files. */
final class AccumuloTests {

  private final Stores stores;
  private final String name;
  private final String root;
  private final int rows;
  private AccumuloCluster accumulo;

  private AccumuloTests(Stores stores, String name) {
    this.stores = stores;
    this.name = name;
    root = "/" + name;
    rows = stores.rows();
  }

  public static void main(String[] args) throws Exception {
    Stores.main(args, AccumuloTests::run);
  }

  private static void run(Stores stores) throws Exception {
    new AccumuloTests(stores, "accumulo-copied").run("sync", false);
    // As Accumulo's guide has it: tables erasure coded, logs copied.
    new AccumuloTests(stores, "accumulo-coded-tables").run("flush", true);
  }

  private void run(String durability, boolean coded) throws Exception {
    if (!stores.runner().wantsGroup(name + "/")) {
      return;
    }
    test("starts", () -> accumulo = new AccumuloCluster(stores, name, root));
    if (accumulo == null) {
      return;
    }
    if (coded) {
      stores.folder(root + "/tables", true);
    }
    Map<String, String> keys = Map.of("table.durability", durability, "table.cache.block.enable", "false");
    try (AccumuloCluster running = accumulo) {
      test(rows + " rows", () -> rows(keys));
      test("flush, compaction, split and merge", this::compact);
      test("bulk import", () -> bulkImport(keys));
      test("clone, export and import of a table", this::export);
      test("data is coded where it should be, logs never", () -> {
        stores.checkCoded(root + "/tables/" + tables().tableIdMap().get("rows"), coded);
        stores.checkCoded(root + "/wal", false);
      });
      create("load", keys);
      test("kill -9 of a tablet server while rows are written", this::killTabletServer);
      test("kill -9 of a DataNode while rows are written", this::killDataNode);
      test("kill -9 of the NameNode while rows are written", this::killNameNode);
      test("kill -9 of a DataNode while rows are read", this::readWithout);
      test("stop", () -> accumulo.stop());
      test("logs are closed by others, no block is damaged", this::checkFiles);
    }
  }

  private void test(String what, Runner.Body body) {
    stores.runner().test(name + "/" + what, body);
  }

  private TableOperations tables() {
    return accumulo.client().tableOperations();
  }

  private void create(String table, Map<String, String> keys) throws Exception {
    TreeSet<Text> splits = new TreeSet<>(List.of(new Text("55"), new Text("aa")));
    tables().create(table, new NewTableConfiguration().setProperties(keys).withSplits(splits));
  }

  private static Mutation mutation(long i) {
    Mutation m = new Mutation(Load.row(i));
    m.put("f", "q", new Value(Load.value(i)));
    return m;
  }

  private void write(String table, long first, long end) throws Exception {
    try (BatchWriter w = accumulo.client().createBatchWriter(table)) {
      for (long i = first; i < end; i++) {
        w.addMutation(mutation(i));
      }
    }
  }

  private void rows(Map<String, String> keys) throws Exception {
    create("rows", keys);
    write("rows", 0, rows);
    checkRows("rows", rows);
  }

  /** All of the first {@code count} rows are there as they were written. */
  private void checkRows(String table, long count) throws Exception {
    Set<Long> seen = new HashSet<>();
    try (Scanner scanner = accumulo.client().createScanner(table, Authorizations.EMPTY)) {
      scanner.forEach(
          (key, value) -> {
            String text = value.toString();
            long i = Long.parseLong(text.substring(0, text.indexOf(':')));
            check(Arrays.equals(value.get(), Load.value(i)), "row " + i + " has another value");
            equal(Load.row(i), key.getRow().toString(), "row of value " + i);
            seen.add(i);
          });
    }
    for (long i = 0; i < count; i++) {
      check(seen.contains(i), "row " + i + " of " + count + " acknowledged ones is lost; " + seen.size() + " are there");
    }
  }

  private void compact() throws Exception {
    for (int turn = 0; turn < 3; turn++) {
      write("rows", turn * 1000, turn * 1000 + 1000);
      tables().flush("rows", null, null, true);
    }
    tables().compact("rows", new CompactionConfig().setWait(true));
    checkRows("rows", rows);
    tables().addSplits("rows", new TreeSet<>(List.of(new Text("2a"), new Text("d0"))));
    checkRows("rows", rows);
    tables().merge("rows", new Text("20"), new Text("60"));
    checkRows("rows", rows);
  }

  private void bulkImport(Map<String, String> keys) throws Exception {
    create("bulk", keys);
    // The client knows no default file system.
    String folder = stores.uri() + root + "-bulk";
    List<Long> order = new ArrayList<>();
    for (long i = 0; i < 20_000; i++) {
      order.add(i);
    }
    order.sort(Comparator.comparing(Load::row));
    stores.roles().fs().mkdirs(new Path(folder));
    try (RFileWriter w = RFile.newWriter().to(folder + "/one.rf").withFileSystem(stores.roles().fs()).build()) {
      for (long i : order) {
        w.append(new Key(Load.row(i), "f", "q", 1), new Value(Load.value(i)));
      }
    }
    tables().importDirectory(folder).to("bulk").load();
    checkRows("bulk", 20_000);
  }

  private void export() throws Exception {
    tables().clone("rows", "clone", CloneConfiguration.builder().setFlush(true).build());
    checkRows("clone", rows);
    tables().offline("clone", true);
    String folder = stores.uri() + root + "-export";
    tables().exportTable("clone", folder);
    DistributedFileSystem fs = stores.roles().fs();
    String copies = stores.uri() + root + "-copies";
    fs.mkdirs(new Path(copies));
    try (BufferedReader list = new BufferedReader(new InputStreamReader(fs.open(new Path(folder, "distcp.txt")), StandardCharsets.UTF_8))) {
      for (String line = list.readLine(); line != null; line = list.readLine()) {
        Path from = new Path(line);
        check(FileUtil.copy(fs, from, fs, new Path(copies, from.getName()), false, fs.getConf()), "copy of " + line);
      }
    }
    tables().importTable("imported", copies);
    checkRows("imported", rows);
    tables().delete("clone");
  }

  private Load load() {
    return new Load(
        (first, count) -> write("load", first, first + count));
  }

  private void killTabletServer() throws Exception {
    try (Load load = load()) {
      load.go(1500);
      tables().flush("load", null, null, true);
      load.go(1500);
      TabletId first = tables().locate("load", List.of(new Range())).groupByTablet().keySet().iterator().next();
      String location = tables().locate("load", List.of(new Range())).getTabletLocation(first);
      Server victim = accumulo.tabletServer(Integer.parseInt(location.substring(location.indexOf(':') + 1)));
      victim.kill();
      load.go(1500);
      checkRows("load", load.stop());
      victim.start();
      Load.await(
          "the tablet server is back",
          () -> accumulo.client().instanceOperations().getTabletServers().size() == AccumuloCluster.TABLET_SERVERS);
    }
  }

  private void killDataNode() throws Throwable {
    try (Load load = load()) {
      load.go(1000);
      stores.withoutDataNode(
          stores.writtenTo(root + "/wal"),
          () -> {
            load.go(1500);
            tables().flush("load", null, null, true);
            load.go(500);
          });
      load.go(500);
      checkRows("load", load.stop());
    }
  }

  private void killNameNode() throws Exception {
    try (Load load = load()) {
      load.go(1000);
      stores.restartNameNode();
      tables().flush("load", null, null, true);
      load.go(1500);
      checkRows("load", load.stop());
    }
  }

  private void readWithout() throws Throwable {
    Random random = new Random(1);
    get(random, 300);
    stores.withoutDataNode(
        stores.holds(root + "/tables"),
        () -> {
          get(random, 1000);
          checkRows("rows", rows);
        });
    get(random, 300);
  }

  /** Tablet servers leave their logs open, for whoever starts next. */
  private void checkFiles() throws Exception {
    Load.await(
        "no file is open",
        () -> {
          List<String> open = stores.open(root);
          for (String path : open) {
            stores.roles().fs().recoverLease(new Path(path));
          }
          return open.isEmpty();
        });
    stores.checkHealth();
  }

  private void get(Random random, int count) throws Exception {
    for (int n = 0; n < count; n++) {
      long i = random.nextInt(rows);
      try (Scanner s = accumulo.client().createScanner("rows", Authorizations.EMPTY)) {
        s.setRange(Range.exact(Load.row(i)));
        Value value = s.iterator().next().getValue();
        check(Arrays.equals(value.get(), Load.value(i)), "value of row " + i);
      }
    }
  }
}
