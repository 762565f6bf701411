package cairn.interop.differential;

/**
 * One call of a client.
 *
 * @param user who calls
 * @param family what kind of call it is, so that a run can be bound to some
 * @param text the call as people read it
 * @param body what is done; its answer is compared
 */
public record Call(String user, String family, String text, Body body) {
  /** Makes the call through {@code door} and returns the answer as text. */
  interface Body {
    String on(Door door) throws Exception;
  }

  /** Something that answers nothing. */
  public interface Act {
    void run() throws Exception;
  }

  /** The answer of what answers nothing. */
  static String done(Act act) throws Exception {
    act.run();
    return "done";
  }

  @Override
  public String toString() {
    return user + ": " + text;
  }
}
