package cairn.interop.differential;

import java.io.InputStream;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.Path;

/** What shows files whose blocks are put into groups behind the back of clients: time that passes, and reading. */
final class GroupCalls {
  /** Long enough for a block that was closed to be grouped, with a heartbeat of a second. */
  private static final long TIME_TO_GROUP_MS = 2500;

  private GroupCalls() {}

  static void addTo(Generator g) {
    g.add("groups", 2, "wait", t -> d -> {
      Thread.sleep(TIME_TO_GROUP_MS);
      return "done";
    });
    g.add("groups", 12, "read", t -> {
      String p = g.path(t);
      return d -> {
        CRC32 sum = new CRC32();
        long length = 0;
        byte[] buffer = new byte[64 << 10];
        try (InputStream in = d.files().open(new Path(d.at(p)))) {
          for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
            sum.update(buffer, 0, n);
            length += n;
          }
        }
        return length + " bytes " + Long.toHexString(sum.getValue());
      };
    });
  }
}
