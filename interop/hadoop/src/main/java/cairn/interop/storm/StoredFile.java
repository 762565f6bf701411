package cairn.interop.storm;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** What is known of one file. Its writer changes it, readers take {@link #state()}. */
final class StoredFile {
  /** A length that the file may have. */
  record Ends(int least, int most) {
    boolean has(long length) {
      return least <= length && length <= most;
    }
  }

  /**
   * All that is known at one moment.
   *
   * @param path its name
   * @param other another name that it may have instead; null for none
   * @param content what was written, acknowledged or not
   * @param ends the lengths that it may have: its bytes are the first so many of {@code content}
   * @param isSettled whether it is closed, and its name and length are known
   * @param mayBeGone whether it may be that there is no such file
   * @param version the number of changes so far
   */
  record State(
      String path,
      String other,
      byte[] content,
      List<Ends> ends,
      boolean isSettled,
      boolean mayBeGone,
      int version) {
    /** The number of its first bytes that no fault may cost. */
    int acknowledged() {
      return ends.stream().mapToInt(Ends::least).min().orElse(0);
    }

    boolean mayHaveLength(long length) {
      return ends.stream().anyMatch(e -> e.has(length));
    }

    String lengths() {
      return ends.stream()
          .map(e -> e.least == e.most ? "" + e.least : e.least + " to " + e.most)
          .collect(Collectors.joining(" or "));
    }
  }

  private volatile State state;

  /** A file that is about to be made. */
  StoredFile(String path) {
    state = new State(path, null, new byte[0], List.of(new Ends(0, 0)), false, true, 0);
  }

  State state() {
    return state;
  }

  private void set(String path, String other, byte[] content, List<Ends> ends, boolean isSettled, boolean mayBeGone) {
    state = new State(path, other, content, ends, isSettled, mayBeGone, state.version + 1);
  }

  /** It is there. */
  void made() {
    set(state.path, state.other, state.content, state.ends, false, false);
  }

  /** Somebody begins to write behind its end. */
  void opened() {
    set(state.path, null, state.content, state.ends, false, false);
  }

  /** These bytes are about to be written at its end. */
  void writing(byte[] bytes) {
    byte[] all = Arrays.copyOf(state.content, state.content.length + bytes.length);
    System.arraycopy(bytes, 0, all, state.content.length, bytes.length);
    set(state.path, null, all, List.of(new Ends(state.acknowledged(), all.length)), false, false);
  }

  /** All that was written is acknowledged. */
  void synced() {
    int length = state.content.length;
    set(state.path, null, state.content, List.of(new Ends(length, length)), false, false);
  }

  /** It may lose all beyond a length. */
  void truncating(int length) {
    int old = state.content.length;
    set(
        state.path,
        null,
        state.content,
        List.of(new Ends(length, length), new Ends(old, old)),
        false,
        false);
  }

  /** It has that length, or will have it when it is closed. */
  void truncated(int length) {
    set(state.path, null, state.content, List.of(new Ends(length, length)), false, false);
  }

  void renaming(String to) {
    set(state.path, to, state.content, state.ends, false, false);
  }

  void deleting() {
    set(state.path, null, state.content, state.ends, false, true);
  }

  /** It is closed under that name with that length; what it has beyond all that was written is zeros. */
  void settled(String path, int length) {
    byte[] content = length == state.content.length ? state.content : Arrays.copyOf(state.content, length);
    set(path, null, content, List.of(new Ends(length, length)), true, false);
  }
}
