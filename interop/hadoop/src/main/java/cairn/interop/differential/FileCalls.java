package cairn.interop.differential;

import static cairn.interop.differential.Generator.BLOCK;
import static cairn.interop.differential.Generator.arg;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.EnumSetWritable;
import org.apache.hadoop.io.IOUtils;

/** Calls on files, and files written, appended to and cut off by the client. */
final class FileCalls {
  private final Generator g;

  private FileCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    FileCalls calls = new FileCalls(g);
    calls.add();
  }

  private String holder(StringBuilder text) {
    return arg(text, g.pick(List.of("writer-1", "writer-2")));
  }

  private void add() {
    g.add("files", 6, "create", t -> {
      String p = g.path(t);
      FsPermission mode = g.permission(t);
      String holder = holder(t);
      EnumSet<CreateFlag> flags =
          arg(
              t,
              g.pick(
                  List.of(
                      EnumSet.of(CreateFlag.CREATE),
                      EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE),
                      EnumSet.of(CreateFlag.OVERWRITE),
                      EnumSet.of(CreateFlag.CREATE, CreateFlag.SHOULD_REPLICATE))));
      boolean parents = arg(t, g.chance(70));
      short replication = arg(t, g.pick(List.of((short) 1, (short) 2, (short) 3, (short) 0, (short) 600)));
      long drawn = g.pick(List.of(BLOCK, 2 * BLOCK, 1024L, 100L, 0L, -1L));
      // Over another file Hadoop stripes blocks that are smaller than a cell.
      long block = arg(t, drawn == 1024 && flags.contains(CreateFlag.OVERWRITE) ? BLOCK : drawn);
      return d -> {
        var status =
            d.name()
                .create(
                    d.at(p),
                    mode,
                    holder,
                    new EnumSetWritable<>(flags),
                    parents,
                    replication,
                    block,
                    CryptoProtocolVersion.supported(),
                    null,
                    null);
        d.ids().put(d.at(p), status.getFileId());
        return Text.status(status);
      };
    });
    g.add("files", 6, "complete", t -> {
      String p = g.path(t);
      String holder = holder(t);
      return d -> "" + d.name().complete(d.at(p), holder, null, d.ids().getOrDefault(d.at(p), 0L));
    });
    g.add("files", 2, "fsync", t -> {
      String p = g.path(t);
      String holder = holder(t);
      return d -> {
        d.name().fsync(d.at(p), d.ids().getOrDefault(d.at(p), 0L), holder, -1);
        return "done";
      };
    });
    g.add("files", 1, "recoverLease", t -> {
      String p = g.path(t);
      String holder = holder(t);
      return d -> "" + d.name().recoverLease(d.at(p), holder);
    });
    g.add("files", 8, "write", t -> {
      String p = g.path(t);
      boolean overwrite = arg(t, g.chance(50));
      int length = arg(t, g.pick(List.of(0, 1, 1000, 100_000, (int) BLOCK, (int) BLOCK * 3 / 2)));
      short replication = arg(t, g.pick(List.of((short) 1, (short) 2, (short) 3)));
      return d -> {
        return filled(
            d.files().create(new Path(d.at(p)), overwrite, 4096, replication, BLOCK), length);
      };
    });
    g.add("files", 3, "append", t -> {
      String p = g.path(t);
      int length = arg(t, g.pick(List.of(0, 1, 70_000)));
      EnumSet<CreateFlag> flags =
          arg(
              t,
              g.pick(
                  List.of(EnumSet.of(CreateFlag.APPEND), EnumSet.of(CreateFlag.APPEND, CreateFlag.NEW_BLOCK))));
      return d -> {
        return filled(d.files().append(new Path(d.at(p)), flags, 4096, null), length);
      };
    });
    g.add("files", 3, "truncate", t -> {
      String p = g.path(t);
      long length = arg(t, g.pick(List.of(0L, 1L, 500L, 1000L, BLOCK, BLOCK + 1, -1L)));
      String holder = holder(t);
      return d -> {
        boolean done = d.name().truncate(d.at(p), length, holder);
        // Inside a block it is done when the DataNodes are.
        for (int i = 0; !done && i < 600 && !d.name().isFileClosed(d.at(p)); i++) {
          Thread.sleep(50);
        }
        return "" + done;
      };
    });
    g.add("files", 3, "concat", t -> {
      String p = g.path(t);
      int n = g.below(4);
      String[] sources = new String[n];
      for (int i = 0; i < n; i++) {
        sources[i] = g.path(t);
      }
      return d -> {
        d.name().concat(d.at(p), Arrays.stream(sources).map(d::at).toArray(String[]::new));
        return "done";
      };
    });
    g.add("files", 3, "setReplication", t -> {
      String p = g.path(t);
      short n = arg(t, g.pick(List.of((short) 1, (short) 2, (short) 3, (short) 0, (short) 600, (short) -1)));
      return d -> "" + d.name().setReplication(d.at(p), n);
    });
    g.add("files", 3, "getBlockLocations", t -> {
      String p = g.path(t);
      long offset = arg(t, g.pick(List.of(0L, 500L, BLOCK, -1L)));
      long length = arg(t, g.pick(List.of(1L, 10 * BLOCK, 0L, -1L)));
      return d -> Text.blocks(d.name().getBlockLocations(d.at(p), offset, length));
    });
    g.add("files", 2, "isFileClosed", t -> {
      String p = g.path(t);
      return d -> "" + d.name().isFileClosed(d.at(p));
    });
    g.add("files", 1, "getPreferredBlockSize", t -> {
      String p = g.path(t);
      return d -> "" + d.name().getPreferredBlockSize(d.at(p));
    });
  }

  /** Writes {@code length} bytes drawn from it. A stream that has failed throws the same exception again as it is closed. */
  private static String filled(OutputStream out, int length) throws IOException {
    try {
      byte[] bytes = new byte[length];
      new Random(length).nextBytes(bytes);
      out.write(bytes);
      out.close();
      return "done";
    } finally {
      IOUtils.closeStream(out);
    }
  }
}
