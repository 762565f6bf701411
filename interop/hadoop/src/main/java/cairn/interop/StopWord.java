package cairn.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;

/** What ends a program that works until it is told to stop. */
final class StopWord {
  private StopWord() {}

  /** Becomes true when standard input has a line or ends. */
  static AtomicBoolean listen() {
    AtomicBoolean heard = new AtomicBoolean();
    Thread listener =
        new Thread(
            () -> {
              try (BufferedReader in =
                  new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
                in.readLine();
              } catch (IOException e) {
                e.printStackTrace();
              }
              heard.set(true);
            });
    listener.setDaemon(true);
    listener.start();
    return heard;
  }
}
