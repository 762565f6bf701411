package cairn.interop.storm;

import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Cairn's client: a process ({@code interop/storm/client.c}), which is started again when it has died. */
final class CairnClient implements Client {
  /** Longer than any call takes that ends by itself. */
  private static final int PATIENCE_SECONDS = 240;

  private static final ExecutorService READERS =
      Executors.newCachedThreadPool(
          task -> {
            Thread t = new Thread(task, "answers of a client");
            t.setDaemon(true);
            return t;
          });

  private final File program;
  private final File conf;
  private final File log;
  private volatile Process process;
  private DataInputStream in;

  CairnClient(File program, File conf, File log) {
    this.program = program;
    this.conf = conf;
    this.log = log;
  }

  /** Ends the process from another thread, as a fault. */
  void kill() {
    Process p = process;
    if (p != null) {
      p.destroyForcibly();
    }
  }

  private void start() throws IOException {
    ProcessBuilder b =
        new ProcessBuilder(program.getPath())
            .redirectError(ProcessBuilder.Redirect.appendTo(log));
    b.environment().put("HADOOP_CONF_DIR", conf.getPath());
    process = b.start();
    in = new DataInputStream(process.getInputStream());
    answer();
  }

  /** A line with a command, and bytes after it; the words after {@code ok}. */
  private String ask(String line, byte[] bytes) throws IOException {
    if (process == null || !process.isAlive()) {
      start();
    }
    try {
      OutputStream to = process.getOutputStream();
      to.write((line + "\n").getBytes(StandardCharsets.UTF_8));
      to.write(bytes);
      to.flush();
    } catch (IOException e) {
      stop();
      throw e;
    }
    return answer();
  }

  private String answer() throws IOException {
    String line = inTime(this::readLine);
    if (line == null) {
      stop();
      throw new IOException("the client has died");
    }
    if (!line.startsWith("ok")) {
      throw new IOException(line);
    }
    return line.substring(2).trim();
  }

  private interface Reading<T> {
    T read() throws IOException;
  }

  private <T> T inTime(Reading<T> reading) throws IOException {
    Future<T> read = READERS.submit(reading::read);
    try {
      return read.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      stop();
      throw new Storm.Hung("Cairn's client gives no answer for " + PATIENCE_SECONDS + " s");
    } catch (ExecutionException e) {
      stop();
      throw new IOException(e.getCause());
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  private String readLine() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = in.read(); c != '\n'; c = in.read()) {
      if (c < 0) {
        return null;
      }
      line.append((char) c);
    }
    return line.toString();
  }

  private void stop() {
    kill();
    process = null;
  }

  @Override
  public void create(String path, int copies) throws IOException {
    ask("create " + path + " " + copies, new byte[0]);
  }

  @Override
  public void append(String path, boolean isStriped) throws IOException {
    ask("append " + path, new byte[0]);
  }

  @Override
  public void write(byte[] bytes) throws IOException {
    ask("write " + bytes.length, bytes);
  }

  @Override
  public void sync() throws IOException {
    ask("sync", new byte[0]);
  }

  @Override
  public void close() throws IOException {
    ask("close", new byte[0]);
  }

  @Override
  public void abandon() {
    stop();
  }

  @Override
  public boolean isRefused() {
    return true;
  }

  @Override
  public boolean truncate(String path, long length) throws IOException {
    return ask("truncate " + path + " " + length, new byte[0]).equals("1");
  }

  @Override
  public void rename(String from, String to) throws IOException {
    ask("rename " + from + " " + to, new byte[0]);
  }

  @Override
  public void delete(String path) throws IOException {
    ask("delete " + path, new byte[0]);
  }

  @Override
  public byte[] read(String path) throws IOException {
    int count = Integer.parseInt(ask("read " + path, new byte[0]));
    byte[] bytes = inTime(() -> in.readNBytes(count));
    if (bytes.length < count) {
      stop();
      throw new IOException("the client has died");
    }
    return bytes;
  }
}
