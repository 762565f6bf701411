package cairn.interop;

import java.io.File;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Durability;

/**
 * HBase at work on a cluster that somebody else runs and disturbs: rows are written, flushed and compacted until standard input
 * ends or says {@code stop}; then all that were acknowledged must be there, also after all of HBase was stopped in order and
 * started again, and no server may have ended by itself. Arguments: the folder of the cluster's configuration, a folder to work in.
 */
final class HBaseFailovers {
  private HBaseFailovers() {}

  private static HBase start(Stores stores) throws Exception {
    return new HBase(stores, "hbase", "/hbase", Map.of("hbase.wal.provider", "asyncfs", "hbase.wal.hsync", "true"));
  }

  private static void mustRun(HBase hbase) {
    hbase.master().mustRun();
    for (int i = 0; i < HBase.REGION_SERVERS; i++) {
      hbase.regionServer(i).mustRun();
    }
  }

  public static void main(String[] args) throws Exception {
    AtomicBoolean stops = StopWord.listen();
    File work = new File(args[1]);
    work.mkdirs();
    TableName table = TableName.valueOf("rows");
    long count = 0;
    long compactions = 0;
    long longest = 0;
    try (Stores stores = Stores.on(new File(args[0]), work)) {
      try (HBase hbase = start(stores)) {
        HBaseTests.create(hbase, table, Durability.FSYNC_WAL);
        try (Load load = HBaseTests.load(hbase, table)) {
          load.go(200);
          System.out.println("writes");
          System.out.flush();
          long flushed = System.nanoTime();
          long moved = System.nanoTime();
          long last = load.acknowledged();
          Admin admin = hbase.admin();
          while (!stops.get()) {
            Thread.sleep(20);
            mustRun(hbase);
            long now = System.nanoTime();
            if (load.acknowledged() != last) {
              last = load.acknowledged();
              longest = Math.max(longest, now - moved);
              moved = now;
            }
            if (now - flushed > 3_000_000_000L) {
              admin.flush(table);
              admin.majorCompact(table);
              compactions++;
              flushed = System.nanoTime();
            }
          }
          load.go(200);
          count = load.stop();
        }
        HBaseTests.checkRows(hbase, table, count);
        mustRun(hbase);
        hbase.stop();
      }
      try (HBase hbase = start(stores)) {
        HBaseTests.checkRows(hbase, table, count);
      }
    }
    System.out.printf(
        "{\"rows\": %d, \"compactions\": %d, \"longest_gap_ms\": %d}%n", count, compactions, longest / 1_000_000);
    System.exit(0);
  }
}
