package cairn.interop.storm;

import java.io.IOException;

/** What a writer asks of a client. One file at a time is open for writing. */
interface Client {
  /** {@code copies} is 0 where the folder is erasure coded. */
  void create(String path, int copies) throws IOException;

  void append(String path, boolean isStriped) throws IOException;

  void write(byte[] bytes) throws IOException;

  /** All that was written so far is on disks when it returns. */
  void sync() throws IOException;

  void close() throws IOException;

  /** Leaves the open file as a writer does that dies. */
  void abandon();

  /** Whether the writer that was left is refused, now that its file is closed by others. */
  boolean isRefused();

  /** Whether the file has its new length already. */
  boolean truncate(String path, long length) throws IOException;

  void rename(String from, String to) throws IOException;

  void delete(String path) throws IOException;

  byte[] read(String path) throws IOException;
}
