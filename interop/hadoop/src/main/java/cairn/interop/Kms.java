package cairn.interop;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.KeyProvider;
import org.apache.hadoop.crypto.key.KeyProviderFactory;

/**
 * Hadoop's key server: a process of its own, with keys in a file, simple authentication and nothing forbidden. Others
 * reach it through a door of this process that can be shut, which looks to them as if the server had been killed, and
 * that can hold back some requests.
 */
final class Kms implements AutoCloseable {
  private static final long START_SECONDS = 60;

  private final File log;
  private final int port = Ports.free();
  private final int door = Ports.free();
  private final Process process;
  private final Set<Socket> through = ConcurrentHashMap.newKeySet();
  private ServerSocket listening;
  private KeyProvider keys;
  private String held;

  /** Starts the server on keys in {@code data}; the first call for a key waits until it serves. */
  Kms(File home, File data) throws Exception {
    log = new File(data.getPath() + ".log");
    File conf = new File(data, "conf");
    conf.mkdirs();
    write(new File(conf, "core-site.xml"), Map.of("hadoop.tmp.dir", data.getPath()));
    write(new File(conf, "kms-acls.xml"), Map.of());
    write(
        new File(conf, "kms-site.xml"),
        Map.of(
            "hadoop.kms.http.host", "127.0.0.1",
            "hadoop.kms.http.port", "" + port,
            "hadoop.kms.key.provider.uri", "jceks://file@" + data.getPath() + "/kms.keystore",
            "hadoop.kms.key.authorization.enable", "false"));
    File logging = new File(conf, "log4j.properties");
    Files.writeString(
        logging.toPath(),
        String.join(
            "\n",
            "log4j.rootLogger=WARN,stderr",
            "log4j.appender.stderr=org.apache.log4j.ConsoleAppender",
            "log4j.appender.stderr.target=System.err",
            "log4j.appender.stderr.layout=org.apache.log4j.PatternLayout",
            "log4j.appender.stderr.layout.ConversionPattern=%d %p %c: %m%n"));
    List<String> command = new ArrayList<>();
    command.add(System.getProperty("java.home") + "/bin/java");
    command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    // Its binding of XML is from before modules.
    command.add("--add-opens=java.base/java.lang=ALL-UNNAMED");
    command.add("-Djava.net.preferIPv4Stack=true");
    command.add("-Dkms.config.dir=" + conf.getPath());
    command.add("-Dlog4j.configuration=" + logging.toURI());
    command.addAll(List.of("-cp", new File(home, "kms/target/lib").getPath() + "/*"));
    command.add("org.apache.hadoop.crypto.key.kms.server.KMSWebServer");
    process =
        new ProcessBuilder(command)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
            .redirectError(ProcessBuilder.Redirect.appendTo(log))
            .start();
    open();
  }

  private static void write(File file, Map<String, String> keys) throws IOException {
    Configuration conf = new Configuration(false);
    keys.forEach(conf::set);
    try (OutputStream out = new FileOutputStream(file)) {
      conf.writeXml(out);
    }
  }

  /** Where clients find it. */
  String uri() {
    return "kms://http@127.0.0.1:" + door + "/kms";
  }

  /** Keys for both roles of a cluster; clients are told by the NameNode. */
  Map<String, String> settings() {
    return Map.of("hadoop.security.key.provider.path", uri());
  }

  private synchronized KeyProvider keys() throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
    while (keys == null) {
      Configuration conf = new Configuration();
      KeyProvider made = KeyProviderFactory.get(URI.create("kms://http@127.0.0.1:" + port + "/kms"), conf);
      try {
        made.getKeys();
        keys = made;
      } catch (IOException e) {
        if (!process.isAlive() || System.nanoTime() > end) {
          throw new IOException("the key server does not serve; see " + log, e);
        }
        Thread.sleep(50);
      }
    }
    return keys;
  }

  /** Makes a key, unless it is there. */
  void make(String name) throws Exception {
    if (keys().getMetadata(name) == null) {
      keys().createKey(name, new KeyProvider.Options(new Configuration()));
    }
  }

  /** Makes a new version of a key. */
  void roll(String name) throws Exception {
    keys().rollNewVersion(name);
  }

  /** Lets nobody through any more and ends the connections of those who are. */
  synchronized void shut() throws IOException {
    listening.close();
    for (Socket s : through) {
      s.close();
    }
    through.clear();
  }

  /** Lets everybody through again. */
  synchronized void open() throws IOException {
    ServerSocket socket = new ServerSocket();
    socket.setReuseAddress(true);
    socket.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), door));
    listening = socket;
    thread(
        () -> {
          while (true) {
            Socket from = socket.accept();
            Socket to;
            try {
              to = new Socket("127.0.0.1", port);
            } catch (IOException e) {
              // The server is still starting.
              from.close();
              continue;
            }
            synchronized (this) {
              through.add(from);
              through.add(to);
              if (socket.isClosed()) {
                shut();
              }
            }
            thread(() -> forward(from, to, true));
            thread(() -> forward(to, from, false));
          }
        });
  }

  /** Holds requests back that have {@code words} in their address. */
  synchronized void hold(String words) {
    held = words;
  }

  synchronized void release() {
    held = null;
    notifyAll();
  }

  private void forward(Socket from, Socket to, boolean requests) throws Exception {
    byte[] buffer = new byte[64 * 1024];
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        if (requests) {
          String text = new String(buffer, 0, n, StandardCharsets.ISO_8859_1);
          synchronized (this) {
            while (held != null && text.contains(held)) {
              wait();
            }
          }
        }
        out.write(buffer, 0, n);
      }
    } finally {
      through.remove(from);
      through.remove(to);
    }
  }

  private static void thread(Runner.Body body) {
    Thread t =
        new Thread(
            () -> {
              try {
                body.run();
              } catch (Throwable e) {
                // The socket has been closed by the other side or by us.
                return;
              }
            });
    t.setDaemon(true);
    t.start();
  }

  @Override
  public void close() throws Exception {
    release();
    shut();
    process.destroyForcibly().waitFor();
  }
}
