package cairn.interop.differential;

import java.util.Map;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;

/**
 * The way of one user into one of the two file systems.
 *
 * @param name Hadoop's client side of {@code ClientProtocol}, without retries
 * @param files the file system, for what needs DataNodes
 * @param root the folder that the paths of calls are in
 * @param ids the id of each file that a call has left open, by its path
 */
record Door(ClientProtocol name, DistributedFileSystem files, String root, Map<String, Long> ids) {
  /** The path that a call means by {@code path}: {@code ~} stands for the folder of the run. */
  String at(String path) {
    return path.replace("~", root);
  }
}
