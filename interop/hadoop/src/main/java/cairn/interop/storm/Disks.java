package cairn.interop.storm;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;

/** What is on the volumes of all DataNodes at one moment, whatever their processes know of it. */
final class Disks {
  private static final Pattern META = Pattern.compile("(blk_(-?\\d+))_(\\d+)\\.meta");

  /** The files of a replica or unit; {@code id} is its own, not that of its group. */
  static final class Replica {
    final int node;
    final long id;
    final long stamp;
    final File block;
    final File meta;
    final boolean isFinalized;
    private Boolean isGood;

    private Replica(int node, long id, long stamp, File block, File meta, boolean isFinalized) {
      this.node = node;
      this.id = id;
      this.stamp = stamp;
      this.block = block;
      this.meta = meta;
      this.isFinalized = isFinalized;
    }

    Part part() {
      return new Part(id, node);
    }

    /** Whether it has at least so many bytes and each of them fits its CRC. */
    boolean isGood(long length) {
      if (isGood == null) {
        isGood = fits();
      }
      return isGood && block.length() >= length;
    }

    private boolean fits() {
      try {
        byte[] sums = Files.readAllBytes(meta.toPath());
        byte[] bytes = Files.readAllBytes(block.toPath());
        if (sums.length < 7) {
          return false;
        }
        ByteBuffer in = ByteBuffer.wrap(sums);
        in.position(3);
        int chunk = in.getInt();
        if (chunk <= 0) {
          // It was torn, or is being written.
          return false;
        }
        CRC32C crc = new CRC32C();
        for (int at = 0; at < bytes.length; at += chunk) {
          int n = Math.min(chunk, bytes.length - at);
          crc.reset();
          crc.update(bytes, at, n);
          if (in.remaining() < 4 || in.getInt() != (int) crc.getValue()) {
            return !isFinalized && at + n == bytes.length;
          }
        }
        return true;
      } catch (IOException e) {
        return false;
      }
    }
  }

  /** By their ids. */
  final Map<Long, List<Replica>> replicas = new HashMap<>();

  Disks(Cluster cluster) {
    for (Cluster.Node node : cluster.nodes) {
      for (Replica r : scan(node.index, node.volumes)) {
        replicas.computeIfAbsent(r.id, i -> new ArrayList<>()).add(r);
      }
    }
  }

  /** What is in the folders of a DataNode's volumes, or of copies of them. */
  static List<Replica> scan(int node, List<File> volumes) {
    List<Replica> found = new ArrayList<>();
    volumes.forEach(v -> scan(node, v.toPath(), found));
    return found;
  }

  private static void scan(int node, Path volume, List<Replica> found) {
    try {
      Files.walkFileTree(
          volume,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path dir, BasicFileAttributes a) {
              return dir.endsWith("tmp") ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes a) {
              Matcher m = META.matcher(file.getFileName().toString());
              File block = m.matches() ? new File(file.toFile().getParentFile(), m.group(1)) : null;
              if (block != null && block.exists()) {
                long id = Long.parseLong(m.group(2));
                boolean isFinalized = !file.getParent().endsWith("rbw");
                long stamp = Long.parseLong(m.group(3));
                found.add(new Replica(node, id, stamp, block, file.toFile(), isFinalized));
              }
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) {
              // It was deleted or renamed by its DataNode.
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path dir, IOException e) {
              return FileVisitResult.CONTINUE;
            }
          });
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** All on the disks of one DataNode. */
  List<Replica> of(int node) {
    return replicas.values().stream().flatMap(List::stream).filter(r -> r.node == node).toList();
  }
}
