package cairn.interop;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** A master and region servers, each a process of its own, with their files at one path of the cluster. */
final class HBase implements AutoCloseable {
  static final int REGION_SERVERS = 2;

  private final Server master;
  private final List<Server> regionServers = new ArrayList<>();
  private final List<Integer> ports = new ArrayList<>();
  private final Configuration conf;
  private final Connection connection;

  HBase(Stores stores, String name, String root, Map<String, String> keys) throws Exception {
    File folder = new File(stores.work(), name);
    File site = new File(folder, "conf");
    stores.writeSite(site);
    Configuration own = new Configuration(false);
    own.set("hbase.rootdir", stores.uri() + root);
    own.set("hbase.cluster.distributed", "true");
    own.set("hbase.tmp.dir", folder + "/tmp");
    own.set("hbase.zookeeper.quorum", "127.0.0.1");
    own.set("hbase.zookeeper.property.clientPort", "" + stores.zooKeeperPort());
    own.set("zookeeper.znode.parent", "/" + name);
    own.set("zookeeper.session.timeout", "6000");
    own.set("hbase.master.hostname", "localhost");
    own.set("hbase.unsafe.regionserver.hostname", "localhost");
    own.set("hbase.master.info.port", "-1");
    own.set("hbase.regionserver.info.port", "-1");
    own.set("hbase.master.wait.on.regionservers.mintostart", "" + REGION_SERVERS);
    own.set("hbase.client.pause", "50");
    own.set("hbase.client.retries.number", "200");
    own.set("hbase.rpc.timeout", "20000");
    own.set("hbase.client.operation.timeout", "150000");
    own.set("hbase.client.meta.operation.timeout", "150000");
    // Small machine: a store must not take all of its heap before it writes.
    own.set("hbase.regionserver.handler.count", "10");
    own.set("hbase.hregion.memstore.flush.size", "" + (8 << 20));
    own.set("hbase.lease.recovery.dfs.timeout", "10000");
    keys.forEach(own::set);
    Stores.write(own, new File(site, "hbase-site.xml"));
    Configuration client = stores.client();
    conf = HBaseConfiguration.create();
    client.forEach(e -> conf.set(e.getKey(), e.getValue()));
    own.forEach(e -> conf.set(e.getKey(), e.getValue()));
    conf.set("hadoop.tmp.dir", folder + "/tmp");
    conf.set("mapreduce.framework.name", "local");
    master =
        new Server("master", folder, site, "400m", "org.apache.hadoop.hbase.master.HMaster", "-Dhbase.master.port=" + Ports.free(), "start");
    for (int i = 0; i < REGION_SERVERS; i++) {
      int port = Ports.free();
      ports.add(port);
      regionServers.add(
          new Server("regionserver" + i, folder, site, "600m", "org.apache.hadoop.hbase.regionserver.HRegionServer", "-Dhbase.regionserver.port=" + port, "start"));
    }
    master.start();
    for (Server s : regionServers) {
      s.start();
    }
    connection = ConnectionFactory.createConnection(conf);
    Load.await("HBase serves", () -> {
      master.mustRun();
      regionServers.forEach(Server::mustRun);
      try {
        return admin().getRegionServers().size() == REGION_SERVERS && admin().isTableAvailable(TableName.META_TABLE_NAME);
      } catch (IOException e) {
        return false;
      }
    });
  }

  Configuration conf() {
    return conf;
  }

  Connection connection() {
    return connection;
  }

  Admin admin() throws IOException {
    return connection.getAdmin();
  }

  /** The index of the region server that listens on {@code port}. */
  int indexOf(int port) {
    return ports.indexOf(port);
  }

  Server regionServer(int i) {
    return regionServers.get(i);
  }

  Server master() {
    return master;
  }

  /** Stops all servers in order, so that every log is closed. */
  void stop() throws Exception {
    admin().shutdown();
    master.join(60);
    for (Server s : regionServers) {
      if (s.isRunning()) {
        s.join(60);
      }
    }
  }

  @Override
  public void close() throws Exception {
    master.close();
    regionServers.forEach(Server::close);
    connection.close();
  }
}
