package cairn.interop.contract;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractFSContract;

/** The contract of the file system that is under test, which is set before the tests start. */
final class ClusterContract extends AbstractFSContract {
  private static Configuration cluster;

  ClusterContract(Configuration conf) {
    super(conf);
    addConfResource("contract/cairn.xml");
  }

  /** Says which file system all tests from now on are for. */
  static void use(Configuration conf) {
    cluster = conf;
  }

  @Override
  public FileSystem getTestFileSystem() throws IOException {
    return FileSystem.get(cluster);
  }

  @Override
  public String getScheme() {
    return FileSystem.getDefaultUri(cluster).getScheme();
  }

  @Override
  public Path getTestPath() {
    return new Path("/test");
  }
}
