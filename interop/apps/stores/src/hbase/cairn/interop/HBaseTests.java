package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotType;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.snapshot.ExportSnapshot;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.HBaseFsck;
import org.apache.hadoop.util.ToolRunner;

/** HBase at work, with either of its writers of logs, on copied and on erasure coded files. */
final class HBaseTests {
  private static final byte[] F = Bytes.toBytes("f");
  private static final byte[] Q = Bytes.toBytes("q");

  private final Stores stores;
  private final String name;
  private final String root;
  private final int rows;
  private HBase hbase;

  private HBaseTests(Stores stores, String name) {
    this.stores = stores;
    this.name = name;
    root = "/" + name;
    rows = stores.rows();
  }

  public static void main(String[] args) throws Exception {
    Stores.main(args, HBaseTests::run);
  }

  private static void run(Stores stores) throws Exception {
    // As most run it: files copied, logs by HBase's own writer.
    new HBaseTests(stores, "hbase-copied").run("asyncfs", Durability.SYNC_WAL, false, false);
    // Data erasure coded, logs copied, which HDFS's client writes.
    new HBaseTests(stores, "hbase-coded-data").run("filesystem", Durability.FSYNC_WAL, true, false);
    // All in an erasure coded folder: HBase asks for copied files where it writes logs.
    new HBaseTests(stores, "hbase-coded").run("asyncfs", Durability.FSYNC_WAL, false, true);
  }

  private void run(String provider, Durability durability, boolean codedData, boolean codedRoot) throws Exception {
    if (!stores.runner().wantsGroup(name + "/")) {
      return;
    }
    stores.folder(root, codedRoot);
    stores.folder(root + "/data", codedData);
    Map<String, String> keys =
        Map.of("hbase.wal.provider", provider, "hbase.wal.hsync", "" + (durability == Durability.FSYNC_WAL));
    test("starts", () -> hbase = new HBase(stores, name, root, keys));
    if (hbase == null) {
      return;
    }
    try (HBase running = hbase) {
      TableName table = table("rows");
      test(rows + " rows, counters and conditions", () -> rows(table, durability));
      test("flush and compaction", () -> compact(table));
      test("split and merge", () -> splitAndMerge(table));
      test("snapshot, clone, restore, export", () -> snapshots(table));
      test("bulk load", this::bulkLoad);
      test("data is coded where it should be, logs never", () -> {
        stores.checkCoded(root + "/data/default/" + table, codedData || codedRoot);
        stores.checkCoded(root + "/WALs", false);
      });
      TableName load = table("load");
      create(load, durability);
      test("kill -9 of a region server while rows are written", () -> killRegionServer(load));
      test("kill -9 of a DataNode while rows are written", () -> killDataNode(load));
      test("kill -9 of the NameNode while rows are written", () -> killNameNode(load));
      test("kill -9 of a DataNode while rows are read", () -> readWithout(table));
      test("hbck finds nothing", this::hbck);
      test("stop", () -> hbase.stop());
      test("no file is left open, no block damaged", this::checkFiles);
    }
  }

  private void test(String what, Runner.Body body) {
    stores.runner().test(name + "/" + what, body);
  }

  private TableName table(String table) {
    return TableName.valueOf(table);
  }

  private void create(TableName table, Durability durability) throws IOException {
    create(hbase, table, durability);
  }

  static void create(HBase hbase, TableName table, Durability durability) throws IOException {
    hbase.admin().createTable(
        TableDescriptorBuilder.newBuilder(table)
            .setDurability(durability)
            // Reads are to come from files.
            .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(F).setBlockCacheEnabled(false).build())
            .build(),
        new byte[][] {Bytes.toBytes("55"), Bytes.toBytes("aa")});
  }

  static Put put(long i) {
    return new Put(Bytes.toBytes(Load.row(i))).addColumn(F, Q, Load.value(i));
  }

  private void rows(TableName table, Durability durability) throws Exception {
    create(table, durability);
    try (BufferedMutator m = hbase.connection().getBufferedMutator(table)) {
      for (int i = 0; i < rows; i++) {
        m.mutate(put(i));
      }
    }
    checkRows(table, rows);
    TableName counters = table("counters");
    create(counters, durability);
    try (Table t = hbase.connection().getTable(counters)) {
      byte[] row = Bytes.toBytes("counter");
      for (int i = 0; i < 300; i++) {
        t.increment(new Increment(row).addColumn(F, Q, 3));
      }
      equal(900L, Bytes.toLong(t.get(new Get(row)).getValue(F, Q)), "counter");
      byte[] once = Bytes.toBytes("once");
      for (int i = 0; i < 100; i++) {
        Put put = new Put(once).addColumn(F, Q, Bytes.toBytes(i));
        CheckAndMutate.Builder when = CheckAndMutate.newBuilder(once);
        when = i == 0 ? when.ifNotExists(F, Q) : when.ifEquals(F, Q, Bytes.toBytes(i - 1));
        check(t.checkAndMutate(when.build(put)).isSuccess(), "condition " + i);
        check(!t.checkAndMutate(CheckAndMutate.newBuilder(once).ifNotExists(F, Q).build(put)).isSuccess(), "condition that does not hold");
      }
    }
  }

  private void checkRows(TableName table, long count) throws IOException {
    checkRows(hbase, table, count);
  }

  /** All of the first {@code count} rows are there as they were written; none is but those and maybe the next few. */
  static void checkRows(HBase hbase, TableName table, long count) throws IOException {
    Set<Long> seen = new HashSet<>();
    try (Table t = hbase.connection().getTable(table);
        ResultScanner scanner = t.getScanner(new Scan().setCaching(1000))) {
      for (Result r : scanner) {
        byte[] value = r.getValue(F, Q);
        String text = Bytes.toString(value);
        long i = Long.parseLong(text.substring(0, text.indexOf(':')));
        check(Arrays.equals(value, Load.value(i)), "row " + i + " has another value");
        equal(Load.row(i), Bytes.toString(r.getRow()), "row of value " + i);
        seen.add(i);
      }
    }
    for (long i = 0; i < count; i++) {
      check(seen.contains(i), "row " + i + " of " + count + " acknowledged ones is lost; " + seen.size() + " are there");
    }
  }

  private void compact(TableName table) throws Exception {
    Admin admin = hbase.admin();
    try (Table t = hbase.connection().getTable(table)) {
      for (int turn = 0; turn < 3; turn++) {
        List<Put> puts = new ArrayList<>();
        for (int i = turn; i < rows; i += 50) {
          puts.add(put(i));
        }
        t.put(puts);
        admin.flush(table);
      }
    }
    check(files(table) > 3, "files before: " + files(table));
    admin.majorCompact(table);
    Load.await("three files are left", () -> files(table) == 3);
    checkRows(table, rows);
  }

  /** Store files of a table, by the servers' account. */
  private long files(TableName table) throws IOException {
    long sum = 0;
    for (var server : hbase.admin().getRegionServers()) {
      for (var region : hbase.admin().getRegionMetrics(server, table)) {
        sum += region.getStoreFileCount();
      }
    }
    return sum;
  }

  private void splitAndMerge(TableName table) throws Exception {
    Admin admin = hbase.admin();
    admin.split(table, Bytes.toBytes("2a"));
    Load.await("four regions", () -> admin.getRegions(table).size() == 4 && available(table));
    checkRows(table, rows);
    admin.majorCompact(table);
    Load.await("compacted", () -> files(table) == 4);
    List<RegionInfo> all = admin.getRegions(table);
    admin.mergeRegionsAsync(new byte[][] {all.get(2).getEncodedNameAsBytes(), all.get(3).getEncodedNameAsBytes()}, false).get(60, TimeUnit.SECONDS);
    Load.await("three regions", () -> admin.getRegions(table).size() == 3 && available(table));
    checkRows(table, rows);
  }

  private boolean available(TableName table) throws IOException {
    return hbase.admin().isTableAvailable(table);
  }

  private void snapshots(TableName table) throws Exception {
    Admin admin = hbase.admin();
    admin.snapshot("first", table, SnapshotType.FLUSH);
    try (Table t = hbase.connection().getTable(table)) {
      t.put(put(rows));
    }
    TableName clone = table("clone");
    admin.cloneSnapshot("first", clone);
    checkRows(clone, rows);
    admin.majorCompact(clone);
    admin.disableTable(table);
    admin.restoreSnapshot("first");
    admin.enableTable(table);
    checkRows(table, rows);
    try (Table t = hbase.connection().getTable(table)) {
      check(t.get(new Get(Bytes.toBytes(Load.row(rows)))).isEmpty(), "a row from after the snapshot is there");
    }
    String target = stores.uri() + "/" + name + "-exported";
    int code =
        ToolRunner.run(new Configuration(hbase.conf()), new ExportSnapshot(), new String[] {"--snapshot", "first", "--copy-to", target, "--mappers", "2"});
    equal(0, code, "status of ExportSnapshot");
    check(stores.roles().fs().getContentSummary(new Path(target)).getLength() > rows * 50L, "the exported snapshot is too small");
    admin.disableTable(clone);
    admin.deleteTable(clone);
    admin.deleteSnapshot("first");
  }

  private void bulkLoad() throws Exception {
    TableName table = table("bulk");
    create(table, Durability.USE_DEFAULT);
    Path folder = new Path("/" + name + "-bulk");
    Path file = new Path(folder, "f/one");
    Configuration conf = hbase.conf();
    List<Long> order = new ArrayList<>();
    for (long i = 0; i < 20_000; i++) {
      order.add(i);
    }
    order.sort(Comparator.comparing(Load::row));
    try (HFile.Writer writer =
        HFile.getWriterFactory(conf, CacheConfig.DISABLED)
            .withPath(stores.roles().fs(), file)
            .withFileContext(new HFileContextBuilder().withBlockSize(65536).build())
            .create()) {
      for (long i : order) {
        writer.append(new KeyValue(Bytes.toBytes(Load.row(i)), F, Q, 1, Load.value(i)));
      }
    }
    BulkLoadHFiles.create(conf).bulkLoad(table, folder);
    checkRows(table, 20_000);
  }

  private Load load(TableName table) {
    return load(hbase, table);
  }

  static Load load(HBase hbase, TableName table) {
    return new Load(
        (first, count) -> {
          List<Put> puts = new ArrayList<>();
          for (long i = first; i < first + count; i++) {
            puts.add(put(i));
          }
          try (Table t = hbase.connection().getTable(table)) {
            t.put(puts);
          }
        });
  }

  private void killRegionServer(TableName table) throws Exception {
    try (Load load = load(table)) {
      load.go(3000);
      hbase.admin().flush(table);
      load.go(3000);
      Server victim = hbase.regionServer(holder(table));
      victim.kill();
      load.go(3000);
      checkRows(table, load.stop());
      victim.start();
      Load.await("the region server is back", () -> hbase.admin().getRegionServers().size() == HBase.REGION_SERVERS);
      hbase.admin().balance();
    }
  }

  /** A region server that has a region of the table. */
  private int holder(TableName table) throws IOException {
    return hbase.indexOf(hbase.connection().getRegionLocator(table).getAllRegionLocations().get(0).getPort());
  }

  private void killDataNode(TableName table) throws Throwable {
    try (Load load = load(table)) {
      load.go(2000);
      stores.withoutDataNode(
          stores.writtenTo(root + "/WALs"),
          () -> {
            load.go(3000);
            hbase.admin().flush(table);
            load.go(1000);
          });
      load.go(1000);
      checkRows(table, load.stop());
    }
  }

  private void killNameNode(TableName table) throws Exception {
    try (Load load = load(table)) {
      load.go(2000);
      stores.restartNameNode();
      hbase.admin().flush(table);
      load.go(3000);
      checkRows(table, load.stop());
    }
  }

  private void readWithout(TableName table) throws Throwable {
    hbase.admin().flush(table);
    Random random = new Random(1);
    try (Table t = hbase.connection().getTable(table)) {
      get(t, random, 500);
      stores.withoutDataNode(
          stores.holds(root + "/data/default/" + table),
          () -> {
            get(t, random, 2000);
            checkRows(table, rows);
          });
      get(t, random, 500);
    }
  }

  private void get(Table t, Random random, int count) throws IOException {
    for (int n = 0; n < count; n++) {
      long i = random.nextInt(rows);
      byte[] value = t.get(new Get(Bytes.toBytes(Load.row(i)))).getValue(F, Q);
      check(Arrays.equals(value, Load.value(i)), "value of row " + i);
    }
  }

  /** What is in files, in the table of tables, and served, fits. */
  @SuppressWarnings("deprecation")
  private void hbck() throws Exception {
    PrintStream out = System.out;
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
    List<String> faults = new ArrayList<>();
    try (HBaseFsck fsck = new HBaseFsck(hbase.conf())) {
      fsck.connect();
      fsck.setTimeLag(0);
      fsck.onlineHbck();
      fsck.getErrors().getErrorList().forEach(e -> faults.add(e.name()));
    } finally {
      System.setOut(out);
    }
    // The region that was split stays until its files have been compacted away.
    faults.removeIf("LINGERING_SPLIT_PARENT"::equals);
    equal(List.of(), faults, "faults; it says " + said.toString(StandardCharsets.UTF_8));
  }

  private void checkFiles() throws Exception {
    stores.checkHealth();
    List<String> open = stores.open(root);
    check(open.isEmpty(), "open: " + open);
  }
}
