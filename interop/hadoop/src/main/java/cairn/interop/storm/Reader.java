package cairn.interop.storm;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Reads files while they are written and while DataNodes fail; a read may fail, but never give other bytes. */
final class Reader extends Thread {
  private final Storm storm;
  private final Client client;
  private final List<Worker> workers;
  private final Random random;

  Reader(Storm storm, String name, Client client, List<Worker> workers, long seed) {
    super("reader by " + name);
    this.storm = storm;
    this.client = client;
    this.workers = workers;
    random = new Random(seed);
    setDaemon(true);
  }

  @Override
  public void run() {
    while (!storm.isOver()) {
      try {
        Thread.sleep(random.nextInt(200));
        Worker w = workers.get(random.nextInt(workers.size()));
        Object[] files = w.files.toArray();
        if (files.length > 0) {
          read(w, (StoredFile) files[random.nextInt(files.length)]);
        }
      } catch (Storm.Hung e) {
        storm.violated(getName() + ": " + e.getMessage());
      } catch (IOException e) {
        storm.counts.unread(e);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  private void read(Worker w, StoredFile file) throws IOException {
    StoredFile.State before = file.state();
    byte[] read;
    try {
      read = client.read(before.path());
    } catch (FileNotFoundException e) {
      if (before.isSettled() && before.version() == file.state().version()) {
        storm.violated(before.path() + ", closed, is not found by " + getName());
      }
      return;
    }
    StoredFile.State after = file.state();
    storm.counts.read(read.length);
    String wrong = difference(read, before.content());
    if (before.version() == after.version()) {
      boolean isWrong = before.isSettled() ? wrong != null : !isPrefix(read, before.content()) && !w.isPadded(before, read);
      if (isWrong) {
        storm.violated(
            "%s, %s, read by %s: %s"
                .formatted(
                    before.path(), before.isSettled() ? "closed" : "open", getName(), wrong));
      }
    } else if (after.version() == before.version() + 1
        && !isPrefix(read, before.content())
        && !isPrefix(read, after.content())) {
      storm.violated(before.path() + ", while it changed, read by " + getName() + ": " + wrong);
    }
  }

  static boolean isPrefix(byte[] read, byte[] content) {
    return read.length <= content.length
        && Arrays.equals(read, 0, read.length, content, 0, read.length);
  }

  /** How bytes differ from those that should be there; null if they do not. */
  static String difference(byte[] read, byte[] wanted) {
    int at = Arrays.mismatch(read, wanted);
    return at < 0 ? null : read.length + " bytes of " + wanted.length + ", the first that differs is " + at;
  }
}
