package cairn.interop;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Ports for servers of the tests. They are below those that the system gives to outgoing connections: such a one could
 * take the port of a server that is stopped for a while, and the server could not come back.
 */
public final class Ports {
  /** Below are those that {@code cairn cluster} takes for its DataNodes. */
  private static final int FIRST = 21_000;

  private static final int END = 32_768;
  private static final long CLAIMED_MS = TimeUnit.MINUTES.toMillis(60);
  private static final Random RANDOM = new Random();
  private static final Set<Integer> TAKEN = new HashSet<>();

  private Ports() {}

  /** A port that was free a moment ago on 127.0.0.1, another one each time, also in other processes of the tests. */
  public static synchronized int free() throws IOException {
    while (TAKEN.size() < END - FIRST) {
      int port = FIRST + RANDOM.nextInt(END - FIRST);
      if (!TAKEN.add(port) || !claim(port)) {
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

  /**
   * Whether no other process means to use a port: one may have it in mind for a server that it has not started yet. What
   * was claimed by one that was killed is given up after a while.
   */
  private static boolean claim(int port) throws IOException {
    File claims = new File(System.getProperty("java.io.tmpdir"), "cairn-interop-ports");
    claims.mkdirs();
    File claim = new File(claims, "" + port);
    if (claim.createNewFile() || System.currentTimeMillis() - claim.lastModified() > CLAIMED_MS) {
      claim.setLastModified(System.currentTimeMillis());
      claim.deleteOnExit();
      return true;
    }
    return false;
  }
}
