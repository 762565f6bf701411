package cairn.interop.differential;

import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.BatchedRemoteIterator.BatchedEntries;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.EncryptionZone;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.ReencryptAction;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.ZoneReencryptionStatus;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.CipherSuiteProto;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.CryptoProtocolVersionProto;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.PerFileEncryptionInfoProto;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.ZoneEncryptionInfoProto;
import org.apache.hadoop.io.EnumSetWritable;
import org.apache.hadoop.thirdparty.protobuf.ByteString;

/**
 * Calls on encryption zones. Both sides have the keys of one key server. Encrypting again is waited for, since how far
 * it has come at some time is nobody's promise.
 */
final class EncryptionCalls {
  /** Keys that are there. */
  static final List<String> KEYS = List.of("k0", "k1");

  private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(20);

  private final Generator g;

  private EncryptionCalls(Generator g) {
    this.g = g;
  }

  static void addTo(Generator g) {
    EncryptionCalls calls = new EncryptionCalls(g);
    calls.zones();
    calls.files();
    calls.attributes();
    calls.again();
  }

  /** A zone of each key outside of all runs: encrypting it again has the NameNode forget older versions of the key. */
  static String idle(String key) {
    return "/idle-" + key;
  }

  private void add(int weight, String name, Generator.Maker maker) {
    g.add("encryption", weight, name, maker);
  }

  /** Paths that meet more often than those of other calls: a file is to be in a zone. */
  private String path(StringBuilder text) {
    return g.chance(10) ? g.path(text) : Generator.arg(text, near());
  }

  private String near() {
    StringBuilder path = new StringBuilder("~");
    for (int i = g.pick(List.of(1, 2, 2, 3)); i > 0; i--) {
      path.append('/').append(g.pick(List.of("a", "b", "c")));
    }
    return path.toString();
  }

  /** A name that no folder has. */
  private String nearFile() {
    return near() + g.pick(List.of("/f", "/g"));
  }

  private String file(StringBuilder text) {
    return g.chance(15) ? path(text) : Generator.arg(text, nearFile());
  }

  private void zones() {
    add(8, "createEncryptionZone", t -> {
      String p = path(t);
      String key = Generator.arg(t, g.chance(85) ? g.pick(KEYS) : g.pick(List.of("none", "", "k 0")));
      return d -> Call.done(() -> d.name().createEncryptionZone(d.at(p), key));
    });
    add(12, "mkdirAndCreateEncryptionZone", t -> {
      String p = path(t);
      String key = Generator.arg(t, g.pick(KEYS));
      return make(p, key);
    });
    add(5, "getEZForPath", t -> {
      String p = path(t);
      return d -> zone(d, d.name().getEZForPath(d.at(p)));
    });
    add(2, "getEZForPath", t -> {
      String p = Generator.arg(t, near() + "/.snapshot" + g.pick(List.of("", "/s0", "/s0/a", "/s1", "/s1/b/c", "/s2/a/a")));
      return d -> zone(d, d.name().getEZForPath(d.at(p)));
    });
    add(3, "listEncryptionZones", t -> {
      String after = g.chance(70) ? null : path(t);
      return d -> zones(d, after == null ? 0 : d.inodes().applyAsLong(d.at(after)));
    });
    add(3, "getEnclosingRoot", t -> {
      String p = path(t);
      return d -> "" + d.name().getEnclosingRoot(d.at(p));
    });
  }

  private static Call.Body make(String path, String key) {
    return d -> {
      // Whatever the mask of the client: others are to write there.
      d.name().mkdirs(d.at(path), FsPermission.createImmutable((short) 0777), true);
      d.name().setPermission(d.at(path), FsPermission.createImmutable((short) 0777));
      return Call.done(() -> d.name().createEncryptionZone(d.at(path), key));
    };
  }

  /** What a run begins with: nothing becomes a zone once there is something in it. */
  static List<Call> first() {
    List<Call> calls = new ArrayList<>();
    for (String path : List.of("~/a", "~/b/a", "~/c")) {
      String key = KEYS.get(calls.size() % 2);
      String text = "mkdirAndCreateEncryptionZone " + path + " " + key;
      calls.add(new Call("superuser", "encryption", text, make(path, key)));
    }
    return calls;
  }

  /** The id is told by whether it is that of what is there now: numbers are not the same on both sides. */
  private static String zone(Door d, EncryptionZone zone) {
    if (zone == null) {
      return "none";
    }
    boolean here = zone.getId() == d.inodes().applyAsLong(zone.getPath());
    return zone.getPath() + (here ? " " : " (not there) ") + zone.getKeyName() + " " + zone.getSuite() + " " + zone.getVersion();
  }

  private static String zones(Door d, long after) throws Exception {
    List<String> lines = new ArrayList<>();
    while (true) {
      BatchedEntries<EncryptionZone> page = d.name().listEncryptionZones(after);
      for (int i = 0; i < page.size(); i++) {
        after = page.get(i).getId();
        lines.add(zone(d, page.get(i)));
      }
      if (!page.hasMore() || page.size() == 0) {
        return lines.toString();
      }
    }
  }

  private void files() {
    add(20, "create", t -> {
      String p = file(t);
      String holder = Generator.arg(t, g.pick(List.of("writer-1", "writer-2")));
      EnumSet<CreateFlag> flags =
          Generator.arg(
              t,
              g.chance(70)
                  ? EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE)
                  : EnumSet.of(CreateFlag.CREATE));
      CryptoProtocolVersion[] versions =
          switch (Generator.arg(t, g.pick(List.of(0, 0, 0, 0, 0, 1, 2)))) {
            case 0 -> CryptoProtocolVersion.supported();
            case 1 -> new CryptoProtocolVersion[0];
            default -> new CryptoProtocolVersion[] {CryptoProtocolVersion.UNKNOWN};
          };
      boolean complete = Generator.arg(t, g.chance(60));
      return d -> {
        var made =
            d.name()
                .create(
                    d.at(p),
                    FsPermission.getFileDefault(),
                    holder,
                    new EnumSetWritable<>(flags),
                    true,
                    (short) 2,
                    1 << 20,
                    versions,
                    null,
                    null);
        d.ids().put(d.at(p), made.getFileId());
        String told = Text.status(made);
        return complete ? told + d.name().complete(d.at(p), holder, null, made.getFileId()) : told;
      };
    });
    add(5, "rename", t -> {
      String from = file(t);
      String to = file(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    add(4, "rename2", t -> {
      String from = file(t);
      String to = file(t);
      Options.Rename option = Generator.arg(t, g.pick(List.of(Options.Rename.values())));
      return d -> Call.done(() -> d.name().rename2(d.at(from), d.at(to), option));
    });
    add(3, "rename", t -> {
      String from = path(t);
      String to = path(t);
      return d -> "" + d.name().rename(d.at(from), d.at(to));
    });
    add(2, "concat", t -> {
      String to = file(t);
      String from = file(t);
      return d -> Call.done(() -> d.name().concat(d.at(to), new String[] {d.at(from)}));
    });
    add(6, "read", t -> {
      String p = file(t);
      return d -> {
        try (var in = d.files().open(new org.apache.hadoop.fs.Path(d.at(p)))) {
          byte[] all = in.readAllBytes();
          // What is written here is zeros; a key that somebody made up gives what nobody foresees.
          return "read " + all.length;
        }
      };
    });
  }

  private XAttr attribute(StringBuilder text, boolean withValue) {
    boolean ofZone = Generator.arg(text, g.chance(50));
    XAttr.Builder b = new XAttr.Builder().setNameSpace(XAttr.NameSpace.RAW);
    b.setName(ofZone ? "hdfs.crypto.encryption.zone" : "hdfs.crypto.file.encryption.info");
    String key = Generator.arg(text, g.pick(KEYS));
    if (withValue && ofZone) {
      b.setValue(
          ZoneEncryptionInfoProto.newBuilder()
              .setSuite(CipherSuiteProto.AES_CTR_NOPADDING)
              .setCryptoProtocolVersion(CryptoProtocolVersionProto.ENCRYPTION_ZONES)
              .setKeyName(key)
              .build()
              .toByteArray());
    } else if (withValue) {
      b.setValue(
          PerFileEncryptionInfoProto.newBuilder()
              .setKey(ByteString.copyFrom(new byte[16]))
              .setIv(ByteString.copyFrom(new byte[16]))
              .setEzKeyVersionName(key + "@0")
              .build()
              .toByteArray());
    }
    return b.build();
  }

  /** By reserved paths, mostly: other paths are refused. */
  private String raw(StringBuilder text) {
    return Generator.arg(text, (g.chance(85) ? "/.reserved/raw" : "") + (g.chance(50) ? near() : nearFile()));
  }

  private static boolean isFolder(Door d, String path) {
    try {
      HdfsFileStatus status = d.name().getFileInfo(d.at(path));
      return status == null || status.isDirectory();
    } catch (IOException e) {
      return true;
    }
  }

  private void attributes() {
    add(6, "setXAttr", t -> {
      String p = raw(t);
      XAttr a = attribute(t, true);
      EnumSet<XAttrSetFlag> flags = EnumSet.of(XAttrSetFlag.CREATE);
      if (!a.getName().endsWith("zone")) {
        // In the place of another of a zone, Hadoop remembers what it did with the other until it is started again.
        flags = g.chance(60) ? EnumSet.allOf(XAttrSetFlag.class) : EnumSet.of(g.pick(List.of(XAttrSetFlag.values())));
      }
      EnumSet<XAttrSetFlag> how = Generator.arg(t, flags);
      return d -> {
        if (a.getName().endsWith("zone") && !isFolder(d, p)) {
          // Hadoop takes a file for a zone then.
          return "left out";
        }
        return Call.done(() -> d.name().setXAttr(d.at(p), a, how));
      };
    });
    add(4, "getXAttrs", t -> {
      String p = raw(t);
      List<XAttr> of = g.chance(50) ? null : List.of(attribute(t, false));
      return d -> Text.attributes(d.name().getXAttrs(d.at(p), of));
    });
    add(2, "listXAttrs", t -> {
      String p = raw(t);
      return d -> Text.attributes(d.name().listXAttrs(d.at(p)));
    });
    add(2, "removeXAttr", t -> {
      String p = raw(t);
      XAttr a = attribute(t, false);
      return d -> Call.done(() -> d.name().removeXAttr(d.at(p), a));
    });
    add(4, "getFileInfo", t -> {
      String p = raw(t);
      return d -> Text.status(d.name().getFileInfo(d.at(p)));
    });
    add(4, "getListing", t -> {
      String p = raw(t);
      boolean located = Generator.arg(t, g.chance(50));
      return d -> Text.listing(d.name().getListing(d.at(p), new byte[0], located));
    });
    add(4, "getBlockLocations", t -> {
      String p = raw(t);
      return d -> Text.blocks(d.name().getBlockLocations(d.at(p), 0, 10 << 20));
    });
  }

  private void again() {
    // A new version is made before both sides are called. Who is refused has older versions left.
    add(1, "rollKey", t -> {
      String key = Generator.arg(t, g.pick(KEYS));
      String p = Generator.arg(t, g.pick(List.of("~/a", "~/b/a", "~/c", near())));
      return d -> {
        again(d, idle(key));
        return again(d, d.at(p));
      };
    });
    add(5, "reencrypt", t -> {
      String p = path(t);
      return d -> again(d, d.at(p));
    });
    add(2, "cancel", t -> {
      String p = path(t);
      return d -> Call.done(() -> d.name().reencryptEncryptionZone(d.at(p), ReencryptAction.CANCEL));
    });
    add(3, "listReencryptionStatus", t -> {
      String after = g.chance(70) ? null : path(t);
      return d -> {
        List<String> lines = new ArrayList<>();
        for (ZoneReencryptionStatus s : statuses(d, after == null ? 0 : d.inodes().applyAsLong(d.at(after)))) {
          if (!s.getZoneName().startsWith("/idle-")) {
            lines.add(text(s));
          }
        }
        return lines.toString();
      };
    });
  }

  private static String again(Door d, String path) throws Exception {
    d.name().reencryptEncryptionZone(path, ReencryptAction.START);
    EncryptionZone zone = d.name().getEZForPath(path);
    long end = System.nanoTime() + PATIENCE_NS;
    while (System.nanoTime() < end) {
      for (ZoneReencryptionStatus s : statuses(d, zone.getId() - 1)) {
        if (s.getId() == zone.getId() && s.getState() == ZoneReencryptionStatus.State.Completed) {
          return text(s);
        }
      }
      Thread.sleep(5);
    }
    return "it does not end";
  }

  private static List<ZoneReencryptionStatus> statuses(Door d, long after) throws Exception {
    List<ZoneReencryptionStatus> all = new ArrayList<>();
    while (true) {
      BatchedEntries<ZoneReencryptionStatus> page = d.name().listReencryptionStatus(after);
      for (int i = 0; i < page.size(); i++) {
        after = page.get(i).getId();
        all.add(page.get(i));
      }
      if (!page.hasMore() || page.size() == 0) {
        return all;
      }
    }
  }

  private static String text(ZoneReencryptionStatus s) {
    return String.join(
        " ",
        s.getZoneName(),
        "" + s.getState(),
        s.getEzKeyVersionName(),
        s.isCanceled() ? "canceled" : "",
        "submitted " + Text.time(s.getSubmissionTime()),
        "completed " + Text.time(s.getCompletionTime()),
        s.getFilesReencrypted() + " files",
        s.getNumReencryptionFailures() + " failures",
        "last " + s.getLastCheckpointFile());
  }
}
