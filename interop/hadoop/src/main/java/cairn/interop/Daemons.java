package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.server.protocol.OutlierMetrics;
import org.apache.hadoop.io.nativeio.NativeIO;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.net.DNSToSwitchMapping;
import org.apache.log4j.FileAppender;
import org.apache.log4j.Logger;
import org.apache.log4j.PatternLayout;

/**
 * Starts real Hadoop daemons behind the same command line, JSON line and control lines as the
 * {@code cairn} binary, so that every test and benchmark runs unchanged against either.
 *
 * <pre>
 * cluster  --datanodes N --racks R --data DIR --rpc-port P --http-port H [--storage TYPES] [-D key=value]...
 * namenode --conf DIR --data DIR [-D key=value]...
 * datanode --conf DIR [--data DIR] [-D key=value]...
 * datanodes --conf DIR --data DIR[,DIR]... [-D key=value]...
 * nameservice --data DIR --datanodes N [-D key=value]...
 * </pre>
 */
public final class Daemons {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Racks read off host names of the form {@code dn3.rack1}; any other name is in the default rack. */
  public static final class HostnameRacks implements DNSToSwitchMapping {
    @Override
    public List<String> resolve(List<String> names) {
      List<String> racks = new ArrayList<>();
      for (String name : names) {
        int dot = name.indexOf(".rack");
        racks.add(dot < 0 ? "/default-rack" : "/" + name.substring(dot + 1));
      }
      return racks;
    }

    @Override
    public void reloadCachedMappings() {}

    @Override
    public void reloadCachedMappings(List<String> names) {}
  }

  private final Map<String, String> flags = new LinkedHashMap<>();
  private final Map<String, String> keys = new LinkedHashMap<>();

  private Daemons(String[] args) {
    for (int i = 1; i < args.length; i += 2) {
      if (args[i].equals("-D")) {
        String[] pair = args[i + 1].split("=", 2);
        keys.put(pair[0], pair[1]);
      } else {
        flags.put(args[i], args[i + 1]);
      }
    }
  }

  public static void main(String[] args) throws Exception {
    Daemons d = new Daemons(args);
    DefaultMetricsSystem.setMiniClusterMode(true);
    // Memory is not really locked, for which native code would be needed.
    NativeIO.POSIX.setCacheManipulator(new NativeIO.POSIX.NoMlockCacheManipulator());
    switch (args[0]) {
      case "cluster" -> d.cluster();
      case "namenode" -> d.role(true);
      case "datanode" -> d.role(false);
      case "datanodes" -> d.dataNodes();
      case "nameservice" ->
          Nameservice.serve(
              new File(d.flags.get("--data")), d.base(), Integer.parseInt(d.flags.get("--datanodes")));
      default -> throw new IllegalArgumentException("unknown role " + args[0]);
    }
  }

  private Configuration base() {
    Configuration conf = new HdfsConfiguration();
    if (flags.containsKey("--conf")) {
      conf.addResource(new Path(flags.get("--conf"), "core-site.xml"));
      conf.addResource(new Path(flags.get("--conf"), "hdfs-site.xml"));
    }
    keys.forEach(conf::set);
    return conf;
  }

  /** Puts the keys where {@code refreshNodes} looks for them: in a file on the class path of all threads to come. */
  private void publish(File site) throws Exception {
    site.mkdirs();
    Configuration own = new Configuration(false);
    keys.forEach(own::set);
    try (OutputStream out = new FileOutputStream(new File(site, "hdfs-site.xml"))) {
      own.writeXml(out);
    }
    ClassLoader parent = Thread.currentThread().getContextClassLoader();
    URL[] path = {site.toURI().toURL()};
    Thread.currentThread().setContextClassLoader(new URLClassLoader(path, parent));
  }

  /** Writes the audit log where Cairn's key says. */
  private static void audit(String file) throws Exception {
    Logger logger = Logger.getLogger("org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit");
    logger.addAppender(new FileAppender(new PatternLayout("%d{ISO8601} %p %c{2}: %m%n"), file));
  }

  private static NameNode nameNode(Configuration conf, File dir) throws Exception {
    if (conf.get("cairn.namenode.audit-log") != null) {
      audit(conf.get("cairn.namenode.audit-log"));
    }
    conf.set("dfs.namenode.name.dir", dir.toURI().toString());
    if (!new File(dir, "current/VERSION").exists()) {
      NameNode.format(conf);
    }
    return new NameNode(conf);
  }

  /** Lets {@code dfsadmin -reconfig} find the files of keys, with the folder of a DataNode's blocks. */
  private static void publish(File conf, File dir) throws Exception {
    File site = new File(dir.getPath() + ".site");
    site.mkdirs();
    Files.writeString(
        new File(site, "hdfs-site.xml").toPath(),
        "<configuration xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\""
            + new File(conf, "hdfs-site.xml").toURI()
            + "\"/><property><name>dfs.datanode.data.dir</name><value>"
            + dir.toURI()
            + "</value></property></configuration>");
    ClassLoader parent = Thread.currentThread().getContextClassLoader();
    URL[] path = {site.toURI().toURL(), conf.toURI().toURL()};
    Thread.currentThread().setContextClassLoader(new URLClassLoader(path, parent));
  }

  /** Lets {@code dfsadmin -reconfig} find the files of keys. */
  private static void publishAsIs(File conf) throws Exception {
    ClassLoader parent = Thread.currentThread().getContextClassLoader();
    URL[] path = {conf.toURI().toURL()};
    Thread.currentThread().setContextClassLoader(new URLClassLoader(path, parent));
  }

  private void role(boolean isNameNode) throws Exception {
    File site = new File(flags.get("--conf"));
    File dir = flags.containsKey("--data") ? new File(flags.get("--data")) : null;
    if (dir == null) {
      publishAsIs(site);
    } else {
      publish(site, dir);
    }
    Configuration conf = base();
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("pid", ProcessHandle.current().pid());
    if (isNameNode) {
      NameNode nn = nameNode(conf, dir);
      line.put("fs", "hdfs://" + address(nn.getNameNodeAddress()));
      System.out.println(JSON.writeValueAsString(line));
      nn.join();
    } else {
      if (dir != null) {
        conf.set("dfs.datanode.data.dir", dir.toURI().toString());
      }
      DataNode dn = DataNode.createDataNode(new String[0], conf);
      line.put("xfer", address(dn.getXferAddress()));
      System.out.println(JSON.writeValueAsString(line));
      // What DataNode.main does: the process ends when an operator or the NameNode shuts the DataNode down.
      Method join = DataNode.class.getDeclaredMethod("join");
      join.setAccessible(true);
      join.invoke(dn);
      System.exit(0);
    }
  }

  /** The folder of a DataNode's blocks, or one for each type of storage. */
  private String volumes(File data, int i) {
    if (!flags.containsKey("--storage")) {
      return new File(data, "dn" + i).toURI().toString();
    }
    List<String> volumes = new ArrayList<>();
    for (String type : flags.get("--storage").split(",")) {
      volumes.add("[" + type + "]" + new File(data, "dn" + i + "-" + type).toURI());
    }
    return String.join(",", volumes);
  }

  private DataNode[] nodes;
  private Configuration[] nodeConfs;

  private void cluster() throws Exception {
    int count = Integer.parseInt(flags.get("--datanodes"));
    int racks = Integer.parseInt(flags.get("--racks"));
    File data = new File(flags.get("--data")).getAbsoluteFile();
    String fs = "hdfs://127.0.0.1:" + flags.get("--rpc-port");
    String http = "127.0.0.1:" + flags.get("--http-port");
    publish(new File(data, "site"));
    Configuration conf = base();
    conf.set("fs.defaultFS", fs);
    conf.set("dfs.namenode.http-address", http);
    conf.set("dfs.namenode.datanode.registration.ip-hostname-check", "false");
    conf.set("net.topology.node.switch.mapping.impl", HostnameRacks.class.getName());
    NameNode nn = nameNode(new HdfsConfiguration(conf), new File(data, "name"));
    nodes = new DataNode[count];
    nodeConfs = new Configuration[count];
    List<Map<String, Object>> described = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Configuration own = new HdfsConfiguration(conf);
      // Clients by HTTP are sent to that name.
      own.set("dfs.datanode.hostname", conf.get("interop.datanode.hostname", "dn" + i + ".rack" + i % racks));
      own.set("dfs.datanode.data.dir", volumes(data, i));
      own.set("dfs.datanode.address", "127.0.0.1:" + Ports.free());
      own.set("dfs.datanode.ipc.address", "127.0.0.1:" + Ports.free());
      own.set("dfs.datanode.http.address", "127.0.0.1:" + Ports.free());
      nodeConfs[i] = own;
      start(i);
    }
    waitForNodes(nn, count);
    for (int i = 0; i < count; i++) {
      Map<String, Object> node = describe(i, "/rack" + i % racks, new File(data, "dn" + i));
      List<Map<String, String>> volumes = new ArrayList<>();
      for (String volume : volumes(data, i).split(",")) {
        String[] parts = volume.split("]");
        if (parts.length == 2) {
          volumes.add(Map.of("type", parts[0].substring(1), "path", URI.create(parts[1]).getPath()));
        }
      }
      node.put("volumes", volumes);
      described.add(node);
    }
    File site = writeSite(data, fs);
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("fs", fs);
    line.put("http", "http://" + http);
    line.put("conf", site.getPath());
    line.put("pids", List.of(ProcessHandle.current().pid()));
    line.put("datanodes", described);
    System.out.println(JSON.writeValueAsString(line));
    control();
  }

  /** DataNodes of somebody else's NameNode, one for each folder. */
  private void dataNodes() throws Exception {
    String[] folders = flags.get("--data").split(",");
    nodes = new DataNode[folders.length];
    nodeConfs = new Configuration[folders.length];
    List<Map<String, Object>> described = new ArrayList<>();
    for (int i = 0; i < folders.length; i++) {
      Configuration own = base();
      own.set("dfs.datanode.data.dir", new File(folders[i]).toURI().toString());
      own.set("dfs.datanode.address", "127.0.0.1:" + Ports.free());
      own.set("dfs.datanode.ipc.address", "127.0.0.1:" + Ports.free());
      own.set("dfs.datanode.http.address", "127.0.0.1:" + Ports.free());
      nodeConfs[i] = own;
      start(i);
      described.add(describe(i, "/default-rack", new File(folders[i])));
    }
    System.out.println(JSON.writeValueAsString(Map.of("datanodes", described)));
    control();
  }

  /** Block groups that the DataNodes of this process have been told to rebuild units of, since their start. */
  private static long reconstructions() throws Exception {
    MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    long sum = 0;
    for (ObjectName name :
        server.queryNames(new ObjectName("Hadoop:service=DataNode,name=DataNodeActivity*"), null)) {
      sum += ((Number) server.getAttribute(name, "EcReconstructionTasks")).longValue();
    }
    return sum;
  }

  private void start(int i) throws Exception {
    nodes[i] = DataNode.createDataNode(new String[0], new HdfsConfiguration(nodeConfs[i]));
  }

  private Map<String, Object> describe(int i, String rack, File dir) {
    Map<String, Object> d = new LinkedHashMap<>();
    d.put("index", i);
    d.put("uuid", nodes[i].getDatanodeUuid());
    d.put("xfer", address(nodes[i].getXferAddress()));
    d.put("ipc", "127.0.0.1:" + nodes[i].getIpcPort());
    d.put("http", "127.0.0.1:" + nodes[i].getInfoPort());
    d.put("rack", rack);
    d.put("data", dir.getPath());
    return d;
  }

  private static void waitForNodes(NameNode nn, int count) throws Exception {
    while (nn.getNamesystem().getNumLiveDataNodes() < count) {
      Thread.sleep(50);
    }
  }

  private static File writeSite(File data, String fs) throws Exception {
    File site = new File(data, "conf");
    site.mkdirs();
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", fs);
    try (OutputStream out = new FileOutputStream(new File(site, "core-site.xml"))) {
      core.writeXml(out);
    }
    try (OutputStream out = new FileOutputStream(new File(site, "hdfs-site.xml"))) {
      new Configuration(false).writeXml(out);
    }
    return site;
  }

  /**
   * Obeys {@code kill-datanode I}, {@code start-datanode I}, {@code reconstructions}, {@code call-slow I NAME} and {@code
   * stop}; the end of input changes nothing.
   */
  private void control() throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      switch (words[0]) {
        case "kill-datanode" -> nodes[Integer.parseInt(words[1])].shutdown();
        case "start-datanode" -> start(Integer.parseInt(words[1]));
        // Its means are told five minutes later at the soonest: what follows from them is put in their place.
        case "call-slow" ->
            nodes[Integer.parseInt(words[1])]
                .getPeerMetrics()
                .setTestOutliers(Map.of(words[2], new OutlierMetrics(1.5, 0.25, 5.0, 50.0)));
        case "reconstructions" -> {
          System.out.println("{\"ok\":true,\"count\":" + reconstructions() + "}");
          continue;
        }
        case "stop" -> {
          System.out.println("{\"ok\":true}");
          Runtime.getRuntime().halt(0);
        }
        default -> {
          System.out.println("{\"ok\":false,\"error\":\"unknown command\"}");
          continue;
        }
      }
      System.out.println("{\"ok\":true}");
    }
    Thread.currentThread().join();
  }

  private static String address(InetSocketAddress a) {
    return a.getAddress().getHostAddress() + ":" + a.getPort();
  }
}
