package cairn.interop.storm;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/** What was done so far. */
final class Counts {
  private final AtomicLong calls = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();
  private final AtomicLong reads = new AtomicLong();
  private final AtomicLong bytesRead = new AtomicLong();
  private final AtomicLong readFailures = new AtomicLong();
  private final Map<String, Integer> faults = new TreeMap<>();

  void done() {
    calls.incrementAndGet();
  }

  void failed(Exception e) {
    failures.incrementAndGet();
    Storm.note("a call failed: " + e);
  }

  void read(long bytes) {
    reads.incrementAndGet();
    bytesRead.addAndGet(bytes);
  }

  void unread(Exception e) {
    readFailures.incrementAndGet();
    Storm.note("a read failed: " + e);
  }

  synchronized void fault(String kind) {
    faults.merge(kind, 1, Integer::sum);
  }

  synchronized String faults() {
    return faults.toString();
  }

  @Override
  public String toString() {
    return "%d changes (%d failed), %d reads (%d failed, %d MiB)"
        .formatted(calls.get(), failures.get(), reads.get(), readFailures.get(), bytesRead.get() >> 20);
  }
}
