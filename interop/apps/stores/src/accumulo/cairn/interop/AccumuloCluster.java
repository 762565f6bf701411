package cairn.interop;

import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.accumulo.core.client.Accumulo;
import org.apache.accumulo.core.client.AccumuloClient;

/** A manager, a garbage collector and tablet servers, each a process of its own, with their files at one path of the cluster. */
final class AccumuloCluster implements AutoCloseable {
  static final int TABLET_SERVERS = 2;
  private static final String PASSWORD = "secret";

  private final File folder;
  private final File site;
  private final List<Server> servers = new ArrayList<>();
  private final List<Integer> ports = new ArrayList<>();
  private final Server collector;
  private final AccumuloClient client;

  AccumuloCluster(Stores stores, String name, String root) throws Exception {
    folder = new File(stores.work(), name);
    site = new File(folder, "conf");
    stores.writeSite(site);
    Properties own = new Properties();
    own.setProperty("instance.volumes", stores.uri() + root);
    own.setProperty("instance.zookeeper.host", "127.0.0.1:" + stores.zooKeeperPort());
    own.setProperty("instance.zookeeper.timeout", "8s");
    own.setProperty("instance.secret", PASSWORD);
    own.setProperty("manager.port.client", "" + Ports.free());
    own.setProperty("gc.port.client", "" + Ports.free());
    own.setProperty("gc.cycle.start", "5s");
    own.setProperty("gc.cycle.delay", "5s");
    own.setProperty("tserver.memory.maps.native.enabled", "false");
    own.setProperty("tserver.memory.maps.max", "48M");
    own.setProperty("tserver.cache.data.size", "8M");
    own.setProperty("tserver.cache.index.size", "16M");
    own.setProperty("manager.recovery.delay", "1s");
    own.setProperty("manager.lease.recovery.interval", "1s");
    // Logs are to be full now and then.
    own.setProperty("tserver.wal.max.size", "16M");
    try (OutputStream out = new FileOutputStream(new File(site, "accumulo.properties"))) {
      own.store(out, null);
    }
    run("init", "init", "--instance-name", name, "--password", PASSWORD);
    collector = server("gc", "256m", "gc");
    servers.add(server("manager", "256m", "manager"));
    servers.add(collector);
    for (int i = 0; i < TABLET_SERVERS; i++) {
      ports.add(Ports.free());
      servers.add(server("tserver" + i, "512m", "tserver", "-o", "tserver.port.client=" + ports.get(i)));
    }
    for (Server s : servers) {
      s.start();
    }
    client = Accumulo.newClient().to(name, "127.0.0.1:" + stores.zooKeeperPort()).as("root", PASSWORD).build();
    Load.await("Accumulo serves", () -> {
      servers.forEach(Server::mustRun);
      return client.instanceOperations().getTabletServers().size() == TABLET_SERVERS;
    });
  }

  private Server server(String name, String heap, String... arguments) {
    String[] all = new String[arguments.length + 1];
    all[0] = "org.apache.accumulo.start.Main";
    System.arraycopy(arguments, 0, all, 1, arguments.length);
    return new Server(name, folder, site, heap, all);
  }

  /** Runs one of Accumulo's commands. */
  private void run(String name, String... arguments) throws Exception {
    try (Server s = server(name, "256m", arguments)) {
      s.start();
      s.join(120);
      Runner.equal(0, s.status(), "status of " + name + "; see " + s.log());
    }
  }

  AccumuloClient client() {
    return client;
  }

  /** The tablet server that listens on {@code port}. */
  Server tabletServer(int port) {
    Runner.check(ports.contains(port), "nobody listens on " + port);
    return servers.get(2 + ports.indexOf(port));
  }

  /** Stops all servers in order, so that no log is needed any more. */
  void stop() throws Exception {
    run("stop", "admin", "stopAll");
    for (Server s : servers) {
      // Nobody tells the garbage collector.
      if (s != collector) {
        s.join(60);
      }
    }
  }

  @Override
  public void close() {
    servers.forEach(Server::close);
    client.close();
  }
}
