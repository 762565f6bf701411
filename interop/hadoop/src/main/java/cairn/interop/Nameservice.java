package cairn.interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.ha.HAServiceProtocol.RequestSource;
import org.apache.hadoop.ha.HAServiceProtocol.StateChangeRequestInfo;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;

/**
 * Two NameNodes of Hadoop, of which one is active, and DataNodes that report to both, all in one process. Prints the
 * folder of a client's keys, then obeys {@code failover} (the active one becomes a standby) and {@code kill} (it ends).
 */
final class Nameservice {
  static final String NAME = "clusters";
  private static final StateChangeRequestInfo FORCED =
      new StateChangeRequestInfo(RequestSource.REQUEST_BY_USER_FORCED);

  private final File data;
  private final Configuration keys;
  private final NameNode[] nameNodes = new NameNode[2];
  private int active;

  private Nameservice(File data, Configuration base) throws IOException {
    this.data = data;
    keys = base;
    keys.set("fs.defaultFS", "hdfs://" + NAME);
    keys.set("dfs.nameservices", NAME);
    keys.set("dfs.ha.namenodes." + NAME, "nn0,nn1");
    keys.set(
        "dfs.client.failover.proxy.provider." + NAME,
        "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider");
    for (int i = 0; i < 2; i++) {
      keys.set("dfs.namenode.rpc-address." + NAME + ".nn" + i, "127.0.0.1:" + Ports.free());
      keys.set("dfs.namenode.http-address." + NAME + ".nn" + i, "127.0.0.1:" + Ports.free());
    }
  }

  static void serve(File data, Configuration base, int dataNodes) throws Exception {
    Nameservice service = new Nameservice(data, base);
    service.start(dataNodes);
    File site = service.writeSite();
    System.out.println(new ObjectMapper().writeValueAsString(Map.of("conf", site.getPath())));
    service.control();
  }

  private File writeSite() throws Exception {
    File site = new File(data, "conf");
    site.mkdirs();
    Configuration own = new Configuration(false);
    for (Map.Entry<String, String> key : keys.getPropsWithPrefix("dfs.").entrySet()) {
      if (key.getKey().contains(NAME) || key.getKey().equals("nameservices")) {
        own.set("dfs." + key.getKey(), key.getValue());
      }
    }
    own.set("fs.defaultFS", keys.get("fs.defaultFS"));
    try (OutputStream out = new FileOutputStream(new File(site, "core-site.xml"))) {
      own.writeXml(out);
    }
    return site;
  }

  private void start(int dataNodes) throws Exception {
    File[] dirs = {new File(data, "name0"), new File(data, "name1")};
    for (int i = 0; i < 2; i++) {
      Configuration own = new HdfsConfiguration(keys);
      own.set("dfs.ha.namenode.id", "nn" + i);
      own.set("dfs.namenode.name.dir", dirs[i].toURI().toString());
      own.set("dfs.namenode.shared.edits.dir", new File(data, "shared").toURI().toString());
      own.set("dfs.namenode.datanode.registration.ip-hostname-check", "false");
      if (i == 0) {
        NameNode.format(own);
        FileUtil.copy(dirs[0], FileSystem.getLocal(own), new Path(dirs[1].toURI()), false, own);
      }
      nameNodes[i] = new NameNode(own);
    }
    nameNodes[0].getRpcServer().transitionToActive(FORCED);
    for (int i = 0; i < dataNodes; i++) {
      Configuration own = new HdfsConfiguration(keys);
      own.set("dfs.datanode.data.dir", new File(data, "dn" + i).toURI().toString());
      own.set("dfs.datanode.address", "127.0.0.1:" + Ports.free());
      own.set("dfs.datanode.ipc.address", "127.0.0.1:" + Ports.free());
      own.set("dfs.datanode.http.address", "127.0.0.1:" + Ports.free());
      DataNode.createDataNode(new String[0], own);
    }
    for (NameNode nameNode : nameNodes) {
      while (nameNode.getNamesystem().getNumLiveDataNodes() < dataNodes) {
        Thread.sleep(50);
      }
    }
  }

  private void control() throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      if (line.equals("kill")) {
        nameNodes[active].stop();
      } else {
        nameNodes[active].getRpcServer().transitionToStandby(FORCED);
      }
      active = 1 - active;
      nameNodes[active].getRpcServer().transitionToActive(FORCED);
      System.out.println("{\"active\":" + active + "}");
    }
    Runtime.getRuntime().halt(0);
  }
}
