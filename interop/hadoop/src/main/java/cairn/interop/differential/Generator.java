package cairn.interop.differential;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.hadoop.fs.permission.FsPermission;

/** Draws calls from a seed: short names that meet often, several users, good and bad arguments. */
final class Generator {
  /** The users beside the superuser; {@code carol} is in no group that the others are in. */
  static final List<String> USERS = List.of("alice", "bob", "carol");

  interface Maker {
    Call.Body make(StringBuilder text);
  }

  private record Kind(String family, int weight, String name, Maker maker) {}

  private static final List<String> NAMES = List.of("a", "b", "c", "d", "e");
  /** The length of a block, bytes. */
  static final long BLOCK = 1 << 20;

  private final Random random;
  private final Set<String> families;
  private final List<Kind> kinds = new ArrayList<>();
  private final Deque<Call> first = new ArrayDeque<>();
  private int total;

  /** Calls of {@code families} only; {@code raw} stands for paths below {@code /.reserved/raw}. */
  Generator(long seed, Set<String> families) {
    random = new Random(seed);
    this.families = families;
    TreeCalls.addTo(this);
    FileCalls.addTo(this);
    AttributeCalls.addTo(this);
    SnapshotCalls.addTo(this);
    CacheCalls.addTo(this);
    EdgeCalls.addTo(this);
    EncryptionCalls.addTo(this);
    SnapshotPathCalls.addTo(this);
    ModeCalls.addTo(this);
    OrderedCalls.addTo(this);
    GroupCalls.addTo(this);
    add("restarts", 2, "restart", t -> d -> Call.done(d.restart()));
    if (families.contains("encryption")) {
      first.addAll(EncryptionCalls.first());
    }
    kinds.removeIf(k -> !families.contains(k.family()));
    for (Kind k : kinds) {
      total += k.weight();
    }
  }

  Call next() {
    if (!first.isEmpty()) {
      return first.removeFirst();
    }
    int at = random.nextInt(total);
    for (Kind k : kinds) {
      at -= k.weight();
      if (at < 0) {
        // The superuser makes a third of the calls: it gets further.
        String user = random.nextInt(3) == 0 || isForSuperuser(k) ? "superuser" : pick(USERS);
        StringBuilder text = new StringBuilder(k.name());
        Call.Body body = k.maker().make(text);
        return new Call(user, k.family(), text.toString(), body);
      }
    }
    throw new IllegalStateException("no family of calls is left");
  }

  /** Others are refused zones. */
  private boolean isForSuperuser(Kind k) {
    return k.family().equals("encryption") && (k.name().equals("rollKey") || chance(70));
  }

  void add(String family, int weight, String name, Maker maker) {
    kinds.add(new Kind(family, weight, name, maker));
  }

  <T> T pick(List<T> of) {
    return of.get(random.nextInt(of.size()));
  }

  boolean chance(int percent) {
    return random.nextInt(100) < percent;
  }

  /** Notes an argument in the text of the call. */
  static <T> T arg(StringBuilder text, T value) {
    text.append(' ').append(value);
    return value;
  }

  String plain() {
    StringBuilder path = new StringBuilder("~");
    for (int i = 1 + random.nextInt(3); i > 0; i--) {
      path.append('/').append(pick(NAMES));
    }
    return path.toString();
  }

  String path(StringBuilder text) {
    int die = random.nextInt(100);
    String p = plain();
    if (families.contains("raw") && chance(50)) {
      return arg(text, reserved(p));
    }
    if (die < 3) {
      p = "~";
    } else if (die < 5) {
      p = odd(p);
    }
    return arg(text, p);
  }

  /** A number from zero on. */
  int below(int bound) {
    return random.nextInt(bound);
  }

  /** Whether calls of a family are among those that are drawn. */
  boolean draws(String family) {
    return families.contains(family);
  }

  /** A path that is not empty: Hadoop cuts one for snapshots at a slash that is not there. */
  String someOf(StringBuilder text) {
    String p = path(new StringBuilder());
    return arg(text, p.isEmpty() ? "~" : p);
  }

  /** A path in the corner of reserved names: mostly one by which {@code p}, or what is in it, is reached. */
  private String reserved(String p) {
    return switch (random.nextInt(20)) {
      case 0, 1, 2, 3, 4, 5, 6, 7, 8 -> "/.reserved/raw" + p;
      case 9, 10, 11, 12 -> "/.reserved/.inodes/[" + p + "]";
      case 13, 14, 15 -> "/.reserved/.inodes/[" + p + "]/" + pick(NAMES);
      case 16 -> "/.reserved/.inodes/[" + p + "]/" + pick(List.of("..", "../a", ".", ""));
      case 17 -> "/.reserved/raw/.reserved/" + pick(List.of("raw" + p, ".inodes/[" + p + "]", "x", ""));
      default ->
          pick(
              List.of(
                  "/.reserved",
                  "/.reserved/",
                  "/.reserved/raw",
                  "/.reserved/raw/",
                  "/.reserved/raw/.reserved",
                  "/.reserved/.inodes",
                  "/.reserved/.inodes/",
                  "/.reserved/.inodes/x",
                  "/.reserved/.inodes/-1",
                  "/.reserved/.inodes/0",
                  "/.reserved/other",
                  "/.reserved/other/a",
                  "/.reserved/rawer/a",
                  "/.reserved//raw" + p));
    };
  }

  private String odd(String p) {
    if (families.contains("snapshots") && chance(15)) {
      return p + "/.snapshot/s0/a";
    }
    return switch (random.nextInt(8)) {
      case 0 -> "";
      case 1 -> "a/b";
      case 2 -> p + "/";
      case 3 -> p + "//x";
      case 4 -> p + "/../x";
      case 5 -> p + "/./x";
      case 6 -> p + "/" + "n".repeat(256);
      default -> p + "/x:y";
    };
  }

  FsPermission permission(StringBuilder text) {
    List<Integer> modes = List.of(0777, 0755, 0700, 0644, 0750, 01777, 0, 0111);
    return arg(text, FsPermission.createImmutable((short) (int) pick(modes)));
  }
}
