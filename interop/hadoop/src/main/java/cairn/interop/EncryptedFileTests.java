package cairn.interop;

import static cairn.interop.Runner.check;
import static cairn.interop.Runner.equal;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileEncryptionInfo;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.CreateEncryptionZoneFlag;
import org.apache.hadoop.hdfs.client.HdfsAdmin;
import org.apache.hadoop.hdfs.protocol.SystemErasureCodingPolicies;
import org.apache.hadoop.security.UserGroupInformation;

/** What is written into encryption zones is read back by all, and only by those who have the keys. */
final class EncryptedFileTests {
  private static final int MIB = 1 << 20;
  private static final long BLOCK = 2 * MIB;
  private static final String INFO = "raw.hdfs.crypto.file.encryption.info";
  private static final List<String> REDUNDANCIES = List.of("3x", "RS-3-2-1024k", "RS-6-3-1024k");

  private final Main.Context x;
  private final Runner runner;
  private final Kms kms;
  private final ClusterProcess cluster;

  private EncryptedFileTests(Main.Context x, Kms kms, ClusterProcess cluster) {
    this.x = x;
    this.runner = x.runner();
    this.kms = kms;
    this.cluster = cluster;
  }

  static void run(Main.Context x, Kms kms, ClusterProcess cluster) throws Exception {
    if (!x.runner().wantsGroup("encryption/files/")) {
      return;
    }
    EncryptedFileTests t = new EncryptedFileTests(x, kms, cluster);
    kms.make("files");
    for (String redundancy : REDUNDANCIES) {
      makeZone(cluster.fs(), zone(redundancy), redundancy, "files");
      t.lengths(redundancy);
      if (x.cairn() != null) {
        t.ownClient(redundancy);
      }
    }
    t.streams();
    t.copies();
    t.keys();
    if (x.cairn() != null) {
      t.ownCommands();
    }
  }

  static Path zone(String redundancy) {
    return new Path("/files", redundancy);
  }

  /** Makes a zone whose files are stored with {@code redundancy}. */
  static void makeZone(DistributedFileSystem fs, Path at, String redundancy, String key) throws Exception {
    fs.mkdirs(at);
    if (!redundancy.equals("3x")) {
      fs.enableErasureCodingPolicy(redundancy);
      fs.setErasureCodingPolicy(at, redundancy);
    }
    new HdfsAdmin(fs.getUri(), fs.getConf())
        .createEncryptionZone(at, key, EnumSet.noneOf(CreateEncryptionZoneFlag.class));
  }

  static Path raw(Path path) {
    return new Path("/.reserved/raw" + path.toUri().getPath());
  }

  static String digest(FileSystem fs, Path path) throws IOException {
    try (FSDataInputStream in = fs.open(path)) {
      return Data.digest(in);
    }
  }

  static FileEncryptionInfo info(DistributedFileSystem fs, Path path) throws IOException {
    FileEncryptionInfo info = fs.getClient().getFileInfo(path.toUri().getPath()).getFileEncryptionInfo();
    check(info != null, path + " has no key");
    return info;
  }

  private void lengths(String redundancy) {
    long cell = redundancy.equals("3x") ? 64 * 1024 : MIB;
    long k =
        redundancy.equals("3x")
            ? 1
            : SystemErasureCodingPolicies.getByName(redundancy).getNumDataUnits();
    List<Long> lengths =
        List.of(0L, 1L, 16L, 17L, cell - 1, cell, cell + 1, k * cell + 1, k * BLOCK - 1, k * BLOCK, k * BLOCK + 1, 2 * k * BLOCK + 100_003);
    runner.test(
        "encryption/files/" + redundancy + "/files of each length are read back, and are other bytes where they lie",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          for (long length : lengths) {
            Path path = new Path(zone(redundancy), "l" + length);
            String sha = FileTests.store(fs, path, length + 7, length, BLOCK);
            equal(length, fs.getFileStatus(path).getLen(), "length of " + path);
            check(fs.getFileStatus(path).isEncrypted(), path + " says that it is encrypted");
            equal(sha, digest(fs, path), "SHA-256 of " + path);
            check(info(fs, path).getKeyName().equals("files"), "the name of the key");
            equal(length, fs.getFileStatus(raw(path)).getLen(), "length of the encrypted bytes");
            if (length > 15) {
              check(!digest(fs, raw(path)).equals(sha), path + " lies there as it is");
            }
            equal(fs.getFileChecksum(raw(path)), fs.getFileChecksum(path), "checksums of " + path);
            pieces(fs, path, length + 7, length);
          }
        });
  }

  /** Reads by position and after seeks, in no order, around the places where a cell or a block may end. */
  private static void pieces(FileSystem fs, Path path, long seed, long length) throws IOException {
    byte[] all = new Data.Source(seed, length).readAllBytes();
    Random random = new Random(seed);
    try (FSDataInputStream in = fs.open(path)) {
      for (int i = 0; i < 16 && length > 0; i++) {
        int edge = random.nextInt((int) (length / (64 * 1024)) + 1) * 64 * 1024;
        int from = Math.max(0, Math.min((int) length - 1, edge - random.nextInt(40)));
        int count = Math.min((int) length - from, 1 + random.nextInt(100_000));
        byte[] piece = new byte[count];
        if (random.nextBoolean()) {
          in.readFully(from, piece);
        } else {
          in.seek(from);
          in.readFully(piece);
        }
        check(Arrays.equals(all, from, from + count, piece, 0, count), path + ": other bytes at " + from);
      }
    }
  }

  private byte[] read(FileSystem fs, Path path) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (FSDataInputStream in = fs.open(path)) {
      in.transferTo(out);
    }
    return out.toByteArray();
  }

  private void streams() {
    runner.test(
        "encryption/files/what is flushed is read while the file is open",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          Path path = new Path(zone("3x"), "flushed");
          byte[] all = new Data.Source(3, 3 * MIB).readAllBytes();
          try (FSDataOutputStream out = fs.create(path, true, 4096, (short) 3, BLOCK)) {
            int at = 0;
            for (int n : new int[] {1, 15, 17, 70_000, 2 * MIB}) {
              out.write(all, at, n);
              at += n;
              if (n % 2 == 0) {
                out.hsync();
              } else {
                out.hflush();
              }
              check(Arrays.equals(Arrays.copyOf(all, at), read(fs, path)), "what is read of the first " + at);
            }
          }
        });
    runner.test(
        "encryption/files/appends go on where the file has ended",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          byte[] all = new Data.Source(4, 16 * MIB).readAllBytes();
          for (String redundancy : REDUNDANCIES) {
            Path path = new Path(zone(redundancy), "appended");
            fs.create(path, true, 4096, (short) 3, BLOCK).close();
            EnumSet<CreateFlag> flags =
                redundancy.equals("3x")
                    ? EnumSet.of(CreateFlag.APPEND)
                    : EnumSet.of(CreateFlag.APPEND, CreateFlag.NEW_BLOCK);
            int at = 0;
            for (int n : new int[] {1, 20, 16 * 1024 + 3, MIB, 2 * MIB - 1}) {
              try (FSDataOutputStream out = fs.append(path, flags, 4096, null)) {
                out.write(all, at, n);
              }
              at += n;
              check(Arrays.equals(Arrays.copyOf(all, at), read(fs, path)), redundancy + ": the first " + at);
            }
          }
        });
    runner.test(
        "encryption/files/a file that is cut off is read, and appended to",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          Path path = new Path(zone("3x"), "cut");
          byte[] all = new Data.Source(5, 3 * MIB + 5).readAllBytes();
          FileTests.store(fs, path, 5, 3 * MIB + 5, BLOCK);
          for (int length : new int[] {3 * MIB + 1, 2 * MIB, MIB + 7, 5}) {
            if (!fs.truncate(path, length)) {
              Runner.await("the file is closed", () -> fs.isFileClosed(path));
            }
            check(Arrays.equals(Arrays.copyOf(all, length), read(fs, path)), "what is left of " + length);
          }
          try (FSDataOutputStream out = fs.append(path)) {
            out.write(all, 5, 100);
          }
          check(Arrays.equals(Arrays.copyOf(all, 105), read(fs, path)), "what was appended");
        });
  }

  private static void copyRaw(DistributedFileSystem fs, Path from, Path to) throws IOException {
    try (InputStream in = fs.open(raw(from));
        OutputStream out = fs.create(raw(to), true, 64 * 1024, (short) 3, BLOCK)) {
      in.transferTo(out);
    }
    fs.setXAttr(raw(to), INFO, fs.getXAttr(raw(from), INFO));
  }

  private void copies() {
    runner.test(
        "encryption/files/encrypted bytes are copied with their key, within a zone and to another of its key",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          Path from = new Path(zone("RS-3-2-1024k"), "to-be-copied");
          long length = 7 * MIB + 3;
          String sha = FileTests.store(fs, from, 6, length, BLOCK);
          for (String redundancy : REDUNDANCIES) {
            Path to = new Path(zone(redundancy), "copy-of-raw");
            copyRaw(fs, from, to);
            equal(sha, digest(fs, to), "SHA-256 of " + to);
            check(Arrays.equals(info(fs, from).getIV(), info(fs, to).getIV()), "the initialisation vectors");
            equal(digest(fs, raw(from)), digest(fs, raw(to)), "SHA-256 of the encrypted bytes");
          }
        });
    runner.test(
        "encryption/files/a snapshot of a zone reads what it saw",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          Path zone = zone("RS-6-3-1024k");
          Path path = new Path(zone, "seen");
          String before = FileTests.store(fs, path, 8, 3 * MIB, BLOCK);
          fs.allowSnapshot(zone);
          Path snapshot = fs.createSnapshot(zone, "s");
          byte[] key = info(fs, path).getEncryptedDataEncryptionKey();
          String after = FileTests.store(fs, path, 9, 4 * MIB, BLOCK);
          check(!Arrays.equals(key, info(fs, path).getEncryptedDataEncryptionKey()), "another key");
          equal(before, digest(fs, new Path(snapshot, "seen")), "SHA-256 of the file in the snapshot");
          equal(after, digest(fs, path), "SHA-256 of the file now");
          fs.delete(path, false);
          equal(before, digest(fs, new Path(snapshot, "seen")), "SHA-256 of the file in the snapshot, alone");
          fs.deleteSnapshot(zone, "s");
          fs.disallowSnapshot(zone);
        });
  }

  private void keys() {
    runner.test(
        "encryption/files/no two files have a key in common",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          ExecutorService threads = Executors.newFixedThreadPool(6);
          List<Future<Void>> all = new ArrayList<>();
          int count = 60;
          for (int i = 0; i < count; i++) {
            Path path = new Path(zone("3x"), "many/" + i);
            all.add(
                threads.submit(
                    () -> {
                      fs.create(path, true).close();
                      return null;
                    }));
          }
          for (Future<Void> f : all) {
            f.get();
          }
          threads.shutdown();
          Set<String> keys = new HashSet<>();
          Set<String> vectors = new HashSet<>();
          for (int i = 0; i < count; i++) {
            FileEncryptionInfo info = info(fs, new Path(zone("3x"), "many/" + i));
            keys.add(HexFormat.of().formatHex(info.getEncryptedDataEncryptionKey()));
            vectors.add(HexFormat.of().formatHex(info.getIV()));
          }
          equal(count, keys.size(), "keys");
          equal(count, vectors.size(), "initialisation vectors");
        });
    runner.test(
        "encryption/files/clients are told where the keys are",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          equal(kms.uri(), fs.getServerDefaults(new Path("/")).getKeyProviderUri(), "what the NameNode says");
          equal(kms.uri(), fs.getClient().getKeyProviderUri().toString(), "what the client uses");
          Path path = new Path(zone("3x"), "told");
          FileTests.store(fs, path, 1, 100, BLOCK);
          Configuration deaf = cluster.conf();
          deaf.unset("hadoop.security.key.provider.path");
          deaf.setBoolean("dfs.client.ignore.namenode.default.kms.uri", true);
          UserGroupInformation other = UserGroupInformation.createRemoteUser("alice");
          other.doAs(
              (PrivilegedExceptionAction<Void>)
                  () -> {
                    try (FileSystem without = FileSystem.newInstance(deaf);
                        FSDataInputStream in = without.open(path)) {
                      throw new AssertionError("it was read without a key: " + in.read());
                    } catch (IOException e) {
                      check(e.getMessage().contains("No KeyProvider is configured"), e.toString());
                    }
                    return null;
                  });
          try (FSDataInputStream in = fs.open(raw(path))) {
            check(Data.digest(in).length() > 0, "nothing");
          }
        });
    runner.test(
        "encryption/files/others write and read with the rights they have",
        () -> {
          cluster.fs().mkdirs(new Path(zone("3x"), "alice"));
          cluster.fs().setOwner(new Path(zone("3x"), "alice"), "alice", "staff");
          UserGroupInformation.createRemoteUser("alice")
              .doAs(
                  (PrivilegedExceptionAction<Void>)
                      () -> {
                        try (DistributedFileSystem own =
                            (DistributedFileSystem) FileSystem.newInstance(cluster.conf())) {
                          Path path = new Path(zone("3x"), "alice/f");
                          equal(FileTests.store(own, path, 2, 100_000, BLOCK), digest(own, path), "SHA-256");
                          equal(
                              zone("3x") + "/.Trash/alice",
                              own.getTrashRoot(path).toUri().getPath(),
                              "where it goes when it is removed");
                          equal("/user/alice/.Trash", own.getTrashRoot(new Path("/f")).toUri().getPath(), "and others");
                          equal(zone("3x"), new Path(own.getEnclosingRoot(path).toUri().getPath()), "the root of renames");
                        }
                        return null;
                      });
        });
  }

  private String fs(String... args) throws Exception {
    return cairn("fs", args);
  }

  private String cairn(String command, String... args) throws Exception {
    List<String> words = new ArrayList<>(List.of(x.cairn().getPath(), "--fs", cluster.uri(), command));
    words.addAll(List.of(args));
    Process p = new ProcessBuilder(words).redirectError(new File(x.work(), "cairn-fs.log")).start();
    p.getOutputStream().close();
    String out = new String(p.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
    int code = p.waitFor();
    String told = Files.readString(new File(x.work(), "cairn-fs.log").toPath());
    equal(0, code, "exit code of " + String.join(" ", words) + " (" + told.trim() + ")");
    return out;
  }

  /** Cairn's own client and Hadoop's read what the other has written. */
  private void ownClient(String redundancy) {
    List<Long> lengths = List.of(0L, 1L, (long) MIB, MIB + 1L, 13 * MIB + 5L);
    runner.test(
        "encryption/files/" + redundancy + "/Hadoop writes, Cairn reads",
        () -> {
          for (long length : lengths) {
            Path path = new Path(zone(redundancy), "by-hadoop-" + length);
            String sha = FileTests.store(cluster.fs(), path, length + 1, length, BLOCK);
            File back = new File(x.work(), "encrypted-back");
            check(!back.exists() || back.delete(), "no file from before");
            fs("get", path.toUri().getPath(), back.getPath());
            try (InputStream in = Files.newInputStream(back.toPath())) {
              equal(sha, Data.digest(in), "SHA-256 of " + path);
            }
          }
          String small = new String(new Data.Source(2, 1).readAllBytes(), StandardCharsets.ISO_8859_1);
          equal(small, fs("cat", zone(redundancy) + "/by-hadoop-1"), "cairn fs cat");
        });
    runner.test(
        "encryption/files/" + redundancy + "/Cairn writes, Hadoop reads",
        () -> {
          for (long length : lengths) {
            Path path = new Path(zone(redundancy), "by-cairn-" + length);
            File local = new File(x.work(), "encrypted-local");
            try (OutputStream out = new FileOutputStream(local)) {
              Data.copy(new Data.Source(length + 2, length), out);
            }
            fs("put", local.getPath(), path.toUri().getPath());
            equal(length, cluster.fs().getFileStatus(path).getLen(), "length");
            equal(Data.digest(length + 2, length), digest(cluster.fs(), path), "SHA-256 of " + path);
            if (length > 15) {
              check(
                  !Data.digest(length + 2, length).equals(digest(cluster.fs(), raw(path))),
                  path + " lies there as it is");
            }
          }
        });
  }

  private void ownCommands() {
    runner.test(
        "encryption/files/cairn crypto, and cairn fs checksum",
        () -> {
          DistributedFileSystem fs = cluster.fs();
          kms.make("own");
          Path zone = new Path("/files/own");
          fs.mkdirs(zone);
          cairn("crypto", "-createZone", "-keyName", "own", "-path", zone.toString());
          equal("own", fs.getEZForPath(zone).getKeyName(), "the key of the zone");
          check(cairn("crypto", "-listZones").contains(zone.toString()), "the zone is listed");
          check(cairn("crypto", "-getZone", "-path", zone + "/x").contains(zone.toString()), "the zone is found");
          equal("rwxrwxrwt", fs.getFileStatus(new Path(zone, ".Trash")).getPermission().toString(), "rights of the trash");
          Path path = new Path(zone, "f");
          String sha = FileTests.store(fs, path, 1, 3 * MIB, BLOCK);
          kms.roll("own");
          cairn("crypto", "-reencryptZone", "-start", "-path", zone.toString());
          EncryptionTests.awaitReencrypted(fs, zone.toString());
          check(cairn("crypto", "-listReencryptionStatus").contains("own@1"), "the status names the version");
          String told = cairn("crypto", "-getFileEncryptionInfo", "-path", path.toString());
          check(told.contains("own@1"), "the version of the key in " + told);
          equal(sha, digest(fs, path), "SHA-256");
          FileChecksum sum = fs.getFileChecksum(path);
          String hex = HexFormat.of().formatHex(sum.getBytes(), 0, sum.getLength());
          check(fs("checksum", path.toString()).contains(hex), "the checksum");
        });
    runner.test(
        "encryption/files/without the key server cairn fs says so",
        () -> {
          Path path = new Path(zone("3x"), "unreadable");
          FileTests.store(cluster.fs(), path, 1, 1000, BLOCK);
          kms.shut();
          long start = System.nanoTime();
          try {
            String seen = fs("cat", path.toString());
            throw new IllegalStateException("it was read: " + seen.length());
          } catch (AssertionError e) {
            check(e.getMessage().toLowerCase(Locale.ROOT).contains("key"), e.getMessage());
          } finally {
            kms.open();
          }
          check(System.nanoTime() - start < 30_000_000_000L, "it took more than 30 s");
          equal(1000, fs("cat", path.toString()).length(), "bytes");
        });
  }
}
