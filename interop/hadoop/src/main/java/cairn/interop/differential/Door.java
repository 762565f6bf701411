package cairn.interop.differential;

import java.util.Map;
import java.util.function.ToLongFunction;
import java.util.regex.Pattern;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;

/**
 * The way of one user into one of the two file systems.
 *
 * @param name Hadoop's client side of {@code ClientProtocol}, without retries
 * @param files the file system, for what needs DataNodes
 * @param root the folder that the paths of calls are in
 * @param pool the block pool
 * @param ids the id of each file that a call has left open, by its path
 * @param inodes the id of the inode at a path, or that of none
 * @param restart ends what is under test by SIGKILL and starts it again
 */
record Door(
    ClientProtocol name,
    DistributedFileSystem files,
    String root,
    String pool,
    Map<String, Long> ids,
    ToLongFunction<String> inodes,
    Call.Act restart) {
  private static final Pattern INODE = Pattern.compile("\\[(.*?)\\]");

  /**
   * The path that a call means by {@code path}: {@code ~} stands for the folder of the run, a path in brackets for the
   * id of the inode that is there.
   */
  String at(String path) {
    String at = path.replace("~", root);
    return INODE.matcher(at).replaceAll(found -> "" + inodes.applyAsLong(found.group(1)));
  }
}
