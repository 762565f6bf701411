package cairn.interop.differential;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FileEncryptionInfo;
import org.apache.hadoop.fs.QuotaUsage;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttr;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.protocol.DirectoryListing;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.hdfs.protocol.SnapshotDiffReport;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.PerFileEncryptionInfoProto;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.ZoneEncryptionInfoProto;
import org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException;

/** Answers as text: all of them that two file systems with the same history must agree on. */
final class Text {
  private Text() {}

  /** A time: whether it is of this run, or its value if a call has set it. */
  static String time(long t) {
    return Math.abs(System.currentTimeMillis() - t) < 3_600_000 ? "now" : "" + t;
  }

  static String status(HdfsFileStatus s) {
    if (s == null) {
      return "null";
    }
    return String.join(
        " ",
        "'" + s.getLocalName() + "'",
        s.isDirectory() ? "dir" : s.isSymlink() ? "link" : "file",
        s.isSymlink() ? "-> " + DFSUtilClient.bytes2String(s.getSymlinkInBytes()) : "",
        "len " + s.getLen(),
        "repl " + s.getReplication(),
        "bs " + s.getBlockSize(),
        s.getPermission() + (s.hasAcl() ? "+" : ""),
        s.isErasureCoded() ? "EC" : "",
        s.isEncrypted() ? "encrypted" : "",
        s.isSnapshotEnabled() ? "snapshottable" : "",
        s.getOwner() + ":" + s.getGroup(),
        "children " + s.getChildrenNum(),
        "m " + time(s.getModificationTime()),
        "a " + (s.getAccessTime() == 0 ? "0" : time(s.getAccessTime())),
        "policy " + s.getStoragePolicy(),
        s.getErasureCodingPolicy() == null ? "" : s.getErasureCodingPolicy().getName())
        + encryption(s.getFileEncryptionInfo());
  }

  /** What is known of a file's key, but for what is drawn by lot. */
  private static String encryption(FileEncryptionInfo info) {
    if (info == null) {
      return "";
    }
    return String.join(
        " ",
        " key",
        info.getKeyName(),
        info.getEzKeyVersionName(),
        "" + info.getCipherSuite(),
        "" + info.getCryptoProtocolVersion(),
        "" + info.getEncryptedDataEncryptionKey().length,
        "" + info.getIV().length);
  }

  static String listing(DirectoryListing l) {
    if (l == null) {
      return "null";
    }
    List<String> lines = new ArrayList<>();
    for (HdfsFileStatus s : l.getPartialListing()) {
      lines.add(status(s));
    }
    return lines + " and " + l.getRemainingEntries();
  }

  static String blocks(LocatedBlocks b) {
    if (b == null) {
      return "null";
    }
    List<String> each = new ArrayList<>();
    for (LocatedBlock block : b.getLocatedBlocks()) {
      each.add(block.getStartOffset() + "+" + block.getBlockSize() + (block.isStriped() ? " striped" : ""));
    }
    return "len "
        + b.getFileLength()
        + (b.isUnderConstruction() ? " open " : " ")
        + (b.isLastBlockComplete() ? "complete " : "")
        + each
        + (b.getErasureCodingPolicy() == null ? "" : " " + b.getErasureCodingPolicy().getName())
        + encryption(b.getFileEncryptionInfo());
  }

  static String usage(QuotaUsage u) {
    return "names "
        + u.getFileAndDirectoryCount()
        + "/"
        + u.getQuota()
        + " space "
        + u.getSpaceConsumed()
        + "/"
        + u.getSpaceQuota();
  }

  /** What is used and allowed on each type of storage, where there is anything to say. */
  static String types(QuotaUsage u, boolean isUseTold) {
    StringBuilder text = new StringBuilder(" types");
    for (StorageType t : StorageType.getTypesSupportingQuota()) {
      long used = isUseTold ? u.getTypeConsumed(t) : 0;
      if (used != 0 || u.getTypeQuota(t) != -1) {
        text.append(' ').append(t).append(' ').append(used).append('/').append(u.getTypeQuota(t));
      }
    }
    return text.toString();
  }

  static String summary(ContentSummary s) {
    return "len "
        + s.getLength()
        + " files "
        + s.getFileCount()
        + " dirs "
        + s.getDirectoryCount()
        + " snapshots "
        + s.getSnapshotLength()
        + " "
        + s.getSnapshotFileCount()
        + " "
        + s.getSnapshotDirectoryCount()
        + " "
        + s.getSnapshotSpaceConsumed()
        + " ec "
        + s.getErasureCodingPolicy()
        + " "
        + usage(s);
  }

  /** Attributes in the order of their names, which is not promised. */
  static String attributes(List<XAttr> attributes) {
    Map<String, String> sorted = new TreeMap<>();
    for (XAttr a : attributes) {
      sorted.put(a.getNameSpace() + "." + a.getName(), a.getValue() == null ? "" : value(a));
    }
    return sorted.toString();
  }

  private static String value(XAttr a) {
    try {
      return switch (a.getName()) {
        case "hdfs.crypto.file.encryption.info" -> {
          PerFileEncryptionInfoProto info = PerFileEncryptionInfoProto.parseFrom(a.getValue());
          yield info.getKey().size() + " " + info.getIv().size() + " " + info.getEzKeyVersionName();
        }
        case "hdfs.crypto.encryption.zone" ->
            ZoneEncryptionInfoProto.parseFrom(a.getValue())
                .toString()
                .replaceAll("Time: \\d+", "Time: now")
                .replaceAll("\\s+", " ");
        default -> new String(a.getValue());
      };
    } catch (InvalidProtocolBufferException e) {
      return e.getMessage();
    }
  }

  static String diff(SnapshotDiffReport report) {
    List<String> lines = new ArrayList<>();
    for (SnapshotDiffReport.DiffReportEntry e : report.getDiffList()) {
      lines.add(e.toString());
    }
    // Entries of one folder come in the order of a hash map.
    lines.sort(null);
    return lines.toString();
  }
}
