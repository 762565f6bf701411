package cairn.interop.storm;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/** Changes the files of one folder, one call after the other, and keeps what was acknowledged of them. */
final class Worker extends Thread {
  private static final int MAX_FILES = 24;
  private static final int MAX_BYTES = 6 << 20;
  private static final int MAX_SNAPSHOTS = 3;

  /** More than any wait for a DataNode. */
  private static final int PATIENCE_SECONDS = 45;

  final String folder;

  /** Copies of each file; 0 where the folder is erasure coded. */
  private final int copies;

  /** Bytes of a stripe; 0 where files are copied. */
  private final int stripe;

  final Client client;
  private final DistributedFileSystem admin;
  private final Storm storm;
  private final Random random;
  final List<StoredFile> files = new CopyOnWriteArrayList<>();

  /** What each snapshot has, by the names of files. */
  final Map<String, Map<String, byte[]>> snapshots = new ConcurrentHashMap<>();

  private final Lock changes;
  private int next;

  /** When the step at hand began, by {@link System#nanoTime}. */
  private volatile long began = System.nanoTime();

  Worker(
      Storm storm,
      String folder,
      int copies,
      int stripe,
      Client client,
      DistributedFileSystem admin,
      long seed) {
    super(folder);
    this.storm = storm;
    this.folder = folder;
    this.copies = copies;
    this.stripe = stripe;
    this.client = client;
    this.admin = admin;
    random = new Random(seed);
    changes = storm.names.readLock();
    setDaemon(true);
  }

  @Override
  public void run() {
    while (!storm.isOver()) {
      try {
        Thread.sleep(random.nextInt(250));
        began = System.nanoTime();
        step();
      } catch (Storm.Hung e) {
        storm.violated(folder + ": " + e.getMessage());
      } catch (IOException e) {
        storm.counts.failed(e);
      } catch (InterruptedException e) {
        // It is an end only if the storm is over; see endIfHung.
      } catch (RuntimeException | Error e) {
        storm.violated(folder + ": " + Storm.trace(e));
      }
    }
  }

  /**
   * Hadoop's writer of erasure coded files can wait for itself for ever: its threads for an answer of the one that writes,
   * and that one for the end of their blocks. Whether it is that which it was freed of; any other call ends by itself.
   */
  boolean endIfHung() {
    if (System.nanoTime() - began < TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS) || !isAlive()) {
      return false;
    }
    for (StackTraceElement e : getStackTrace()) {
      if (e.getClassName().endsWith(".DFSStripedOutputStream") && e.getMethodName().equals("waitEndBlocks")) {
        interrupt();
        began = System.nanoTime();
        return true;
      }
    }
    return false;
  }

  boolean isStriped() {
    return stripe > 0;
  }

  private boolean chance(double p) {
    return random.nextDouble() < p;
  }

  private void step() throws IOException, InterruptedException {
    List<StoredFile> settled = new ArrayList<>();
    long bytes = 0;
    for (StoredFile f : files) {
      bytes += f.state().content().length;
      if (f.state().isSettled()) {
        settled.add(f);
      } else if (chance(0.2)) {
        settle(f, 1);
      }
    }
    int what = random.nextInt(100);
    StoredFile file = settled.isEmpty() ? null : settled.get(random.nextInt(settled.size()));
    if (file != null && (files.size() >= MAX_FILES || bytes > MAX_BYTES)) {
      delete(file);
    } else if (file == null || what < 35) {
      create();
    } else if (what < 55 && (copies > 0 || client instanceof HadoopClient)) {
      // Cairn's client has no append of erasure coded files.
      append(file);
    } else if (what < 65 && copies > 0) {
      truncate(file);
    } else if (what < 75) {
      rename(file);
    } else if (what < 82) {
      delete(file);
    } else if (what < 87 && copies > 0) {
      setReplication(file.state().path());
    } else if (what < 93) {
      snapshot();
    } else {
      check(file.state());
    }
    storm.counts.done();
  }

  private void create() throws IOException, InterruptedException {
    StoredFile f = new StoredFile(folder + "/f" + next++);
    files.add(f);
    boolean isDone = false;
    try {
      Storm.note("create " + f.state().path());
      client.create(f.state().path(), copies);
      f.made();
      isDone = write(f);
    } finally {
      if (!isDone) {
        letGo(f);
      }
    }
  }

  private void append(StoredFile f) throws IOException, InterruptedException {
    boolean isDone = false;
    try {
      changes.lock();
      try {
        f.opened();
        Storm.note("append " + f.state().path() + " behind " + f.state().content().length);
        client.append(f.state().path(), copies == 0);
      } finally {
        changes.unlock();
      }
      isDone = write(f);
    } finally {
      if (!isDone) {
        letGo(f);
      }
    }
  }

  /** Writes some pieces to a file that is open; whether it was closed then. */
  private boolean write(StoredFile f) throws IOException, InterruptedException {
    for (int pieces = random.nextInt(5); pieces >= 0; pieces--) {
      byte[] bytes = new byte[chance(0.2) ? 1 + random.nextInt(700) : 1 + random.nextInt(220_000)];
      random.nextBytes(bytes);
      f.writing(bytes);
      client.write(bytes);
      if (copies > 0 && chance(0.4)) {
        client.sync();
        f.synced();
        Storm.note("synced " + f.state().path() + " with " + f.state().content().length);
      }
      if (chance(0.4)) {
        Thread.sleep(random.nextInt(800));
      }
    }
    if (chance(0.12)) {
      return false;
    }
    client.close();
    f.settled(f.state().path(), f.state().content().length);
    Storm.note("closed " + f.state().path() + " with " + f.state().content().length);
    return true;
  }

  /** Dies as the file's writer, and has others close it. */
  private void letGo(StoredFile f) throws IOException, InterruptedException {
    client.abandon();
    if (settle(f, 20) && !client.isRefused()) {
      storm.violated(f.state().path() + ": its former writer is answered after its lease was recovered");
    }
  }

  private void truncate(StoredFile f) throws IOException, InterruptedException {
    int old = f.state().content().length;
    int length = chance(0.2) ? old / Cluster.BLOCK * Cluster.BLOCK : old == 0 ? 0 : random.nextInt(old);
    boolean isDone = false;
    try {
      changes.lock();
      try {
        f.truncating(length);
        Storm.note("truncate " + f.state().path() + " from " + old + " to " + length);
        isDone = client.truncate(f.state().path(), length);
        f.truncated(length);
      } finally {
        changes.unlock();
      }
    } finally {
      if (isDone) {
        f.settled(f.state().path(), length);
      } else {
        settle(f, 20);
      }
    }
  }

  private void rename(StoredFile f) throws IOException, InterruptedException {
    String to = folder + "/f" + next++;
    boolean isDone = false;
    try {
      changes.lock();
      try {
        String from = f.state().path();
        f.renaming(to);
        Storm.note("rename " + from + " to " + to);
        client.rename(from, to);
      } finally {
        changes.unlock();
      }
      f.settled(to, f.state().content().length);
      isDone = true;
    } finally {
      if (!isDone) {
        settle(f, 20);
      }
    }
  }

  private void delete(StoredFile f) throws IOException, InterruptedException {
    boolean isDone = false;
    try {
      changes.lock();
      try {
        f.deleting();
        Storm.note("delete " + f.state().path());
        client.delete(f.state().path());
      } finally {
        changes.unlock();
      }
      files.remove(f);
      isDone = true;
    } finally {
      if (!isDone) {
        settle(f, 20);
      }
    }
  }

  private void setReplication(String path) throws IOException {
    changes.lock();
    try {
      Set<Long> blocks = new HashSet<>();
      for (LocatedBlock b :
          admin.getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).getLocatedBlocks()) {
        blocks.add(b.getBlock().getBlockId());
      }
      // With fewer copies it bears fewer faults.
      int least = storm.ration.hasDestroyed(blocks) ? 3 : 2;
      int wanted = least + random.nextInt(4 - least);
      Storm.note("copies of " + path + ": " + wanted);
      admin.setReplication(new Path(path), (short) wanted);
    } finally {
      changes.unlock();
    }
  }

  private void snapshot() throws IOException {
    Path root = new Path(folder);
    if (snapshots.size() >= MAX_SNAPSHOTS || !snapshots.isEmpty() && chance(0.3)) {
      String name = snapshots.keySet().iterator().next();
      // Whatever the answer is: it may be gone.
      snapshots.remove(name);
      Storm.note("delete snapshot " + name);
      changes.lock();
      try {
        admin.deleteSnapshot(root, name);
      } finally {
        changes.unlock();
      }
      return;
    }
    Map<String, byte[]> has = new HashMap<>();
    for (StoredFile f : files) {
      StoredFile.State s = f.state();
      if (s.isSettled()) {
        has.put(s.path().substring(folder.length() + 1), s.content());
      }
    }
    String name = "s" + next++;
    Storm.note("snapshot " + name + " of " + has.keySet());
    changes.lock();
    try {
      admin.createSnapshot(root, name);
    } finally {
      changes.unlock();
    }
    snapshots.put(name, has);
  }

  /** Reads a closed file of its own. */
  private void check(StoredFile.State s) throws IOException {
    byte[] read = client.read(s.path());
    String wrong = Reader.difference(read, s.content());
    if (wrong != null) {
      storm.violated(s.path() + ", closed, read by its writer: " + wrong);
    }
  }

  /**
   * Finds out what became of a file after a call that failed: has it closed, and takes what it is then for what it is from
   * then on. Whether that was done in so many seconds.
   */
  boolean settle(StoredFile f, int seconds) throws InterruptedException {
    long end = System.nanoTime() + seconds * 1_000_000_000L;
    do {
      try {
        if (look(f)) {
          return true;
        }
      } catch (IOException e) {
        // The NameNode is away.
      }
      Thread.sleep(300);
    } while (System.nanoTime() < end);
    return false;
  }

  /**
   * Whether a group that nobody closed ends with its last stripe: the only unit that shows where the data ends may be away,
   * and there are zeros then, as with Hadoop ({@code sim/README.md}, "Open").
   */
  private boolean isPadded(StoredFile.State s, int length) {
    int written = s.content().length;
    return s.acknowledged() < written && written < length && length < written + stripe;
  }

  /** Whether these are the bytes of such a file, which was closed by somebody else. */
  boolean isPadded(StoredFile.State s, byte[] read) {
    return isPadded(s, read.length) && Arrays.equals(read, Arrays.copyOf(s.content(), read.length));
  }

  private boolean look(StoredFile f) throws IOException {
    StoredFile.State s = f.state();
    boolean here = admin.exists(new Path(s.path()));
    boolean there = s.other() != null && admin.exists(new Path(s.other()));
    if (here && there) {
      storm.violated(s.path() + " is also " + s.other());
    }
    if (!here && !there) {
      if (!s.mayBeGone()) {
        storm.violated(s.path() + " is gone");
      }
      files.remove(f);
      return true;
    }
    Path path = new Path(here ? s.path() : s.other());
    try {
      if (!admin.isFileClosed(path) && !admin.recoverLease(path)) {
        return false;
      }
      FileStatus status = admin.getFileStatus(path);
      int length = (int) status.getLen();
      if (!s.mayHaveLength(length) && !isPadded(s, length)) {
        storm.violated(path.toUri().getPath() + " is closed with " + length + " bytes, not " + s.lengths());
      }
      f.settled(path.toUri().getPath(), length);
      Storm.note("settled " + path.toUri().getPath() + " with " + length);
      return true;
    } catch (FileNotFoundException e) {
      // A call from before was carried out meanwhile: another look.
      return false;
    }
  }
}
