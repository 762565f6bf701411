package cairn.interop.contract;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractFSContract;

/** The contract of the file system that is under test, which is set before the tests start. */
final class ClusterContract extends AbstractFSContract {
  private static Configuration cluster;
  private static FileSystem withLargerBlocks;

  private final long minBlockSize;

  ClusterContract(Configuration conf) {
    this(conf, 0);
  }

  /** One whose files have blocks of at least so many bytes. */
  ClusterContract(Configuration conf, long minBlockSize) {
    super(conf);
    this.minBlockSize = minBlockSize;
    addConfResource("contract/cairn.xml");
  }

  /** Says which file system all tests from now on are for. */
  static void use(Configuration conf) throws IOException {
    cluster = conf;
    if (withLargerBlocks != null) {
      withLargerBlocks.close();
      withLargerBlocks = null;
    }
  }

  @Override
  public FileSystem getTestFileSystem() throws IOException {
    if (cluster.getLong("dfs.blocksize", minBlockSize) >= minBlockSize) {
      return FileSystem.get(cluster);
    }
    if (withLargerBlocks == null) {
      Configuration conf = new Configuration(cluster);
      conf.setLong("dfs.blocksize", minBlockSize);
      withLargerBlocks = FileSystem.newInstance(conf);
    }
    return withLargerBlocks;
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
