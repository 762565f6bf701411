package cairn.interop.storm;

import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** Hadoop's own client, in this process. */
final class HadoopClient implements Client {
  private final DistributedFileSystem fs;
  private FSDataOutputStream out;
  private FSDataOutputStream left;

  HadoopClient(DistributedFileSystem fs) {
    this.fs = fs;
  }

  @Override
  public void create(String path, int copies) throws IOException {
    short number = copies == 0 ? 1 : (short) copies;
    out = fs.create(new Path(path), false, 4096, number, Cluster.BLOCK);
  }

  @Override
  public void append(String path, boolean isStriped) throws IOException {
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.APPEND);
    if (isStriped) {
      flags.add(CreateFlag.NEW_BLOCK);
    }
    out = fs.append(new Path(path), flags, 4096, null);
  }

  @Override
  public void write(byte[] bytes) throws IOException {
    out.write(bytes);
  }

  @Override
  public void sync() throws IOException {
    out.hsync();
  }

  @Override
  public void close() throws IOException {
    out.close();
    out = null;
  }

  @Override
  public void abandon() {
    left = out;
    out = null;
  }

  @Override
  public boolean isRefused() {
    if (left == null) {
      return true;
    }
    try {
      left.write(new byte[100]);
      left.hsync();
      return !left.hasCapability("hsync");
    } catch (IOException e) {
      return true;
    } finally {
      // Its threads end, whatever it says.
      try {
        left.close();
      } catch (IOException e) {
        // The file is not its own any more.
      }
      left = null;
    }
  }

  @Override
  public boolean truncate(String path, long length) throws IOException {
    return fs.truncate(new Path(path), length);
  }

  @Override
  public void rename(String from, String to) throws IOException {
    fs.rename(new Path(from), new Path(to), Options.Rename.NONE);
  }

  @Override
  public void delete(String path) throws IOException {
    if (!fs.delete(new Path(path), false)) {
      throw new IOException("there was nothing to delete");
    }
  }

  @Override
  public byte[] read(String path) throws IOException {
    try (FSDataInputStream in = fs.open(new Path(path))) {
      return in.readAllBytes();
    } catch (RuntimeException e) {
      // Its striped reader stumbles over what it could not read: a decoder that is null.
      throw new IOException(e);
    }
  }
}
