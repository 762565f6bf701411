package cairn.interop;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;

/**
 * Ports for servers of the tests. They are below those that the system gives to outgoing connections: such a one could
 * take the port of a server that is stopped for a while, and the server could not come back.
 */
final class Ports {
  /** Below are those that {@code cairn cluster} takes for its DataNodes. */
  private static final int FIRST = 21_000;

  private static final int END = 32_768;
  private static final Random RANDOM = new Random();
  private static final Set<Integer> TAKEN = new HashSet<>();

  private Ports() {}

  /** A port that was free a moment ago on 127.0.0.1, another one each time. */
  static synchronized int free() throws IOException {
    while (TAKEN.size() < END - FIRST) {
      int port = FIRST + RANDOM.nextInt(END - FIRST);
      if (!TAKEN.add(port)) {
        continue;
      }
      try (ServerSocket s = new ServerSocket()) {
        s.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port));
        return port;
      } catch (IOException e) {
        // Somebody has it: another one.
      }
    }
    throw new IOException("no port is free");
  }
}
