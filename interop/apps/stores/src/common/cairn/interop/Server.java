package cairn.interop;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** One server of a store: a JVM of its own, so that a signal hits it alone. */
final class Server implements AutoCloseable {
  /** What the stores open of Java's own for themselves, as their start scripts do. */
  private static final List<String> OPEN =
      List.of(
          "java.io", "java.lang", "java.lang.reflect", "java.net", "java.nio", "java.util", "java.util.concurrent",
          "java.util.concurrent.atomic", "sun.nio.ch", "jdk.internal.ref");

  private final String name;
  private final File log;
  private final List<String> command = new ArrayList<>();
  private Process process;

  /** A server with the files of keys in {@code conf}; it is not started yet. */
  Server(String name, File folder, File conf, String heap, String... mainAndArguments) {
    this.name = name;
    log = new File(folder, name + ".log");
    command.add(System.getProperty("java.home") + "/bin/java");
    command.addAll(List.of("-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-Djava.net.preferIPv4Stack=true", "-XX:-OmitStackTraceInFastThrow"));
    command.add("-Dlog4j2.configurationFile=" + new File(System.getProperty("stores.home"), "src/conf/log4j2.properties"));
    OPEN.forEach(p -> command.addAll(List.of("--add-opens", "java.base/" + p + "=ALL-UNNAMED")));
    command.addAll(List.of("-cp", conf + File.pathSeparator + System.getProperty("stores.classes")));
    command.addAll(List.of(mainAndArguments));
  }

  void start() throws IOException {
    process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
            .start();
  }

  /** Sends SIGKILL. */
  void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  boolean isRunning() {
    return process != null && process.isAlive();
  }

  /** True; it is a failure if it has ended. */
  boolean mustRun() {
    Runner.check(isRunning(), name + " has ended; see " + log);
    return true;
  }

  /** Waits until it has ended by itself. */
  void join(long seconds) throws Exception {
    Runner.check(process.waitFor(seconds, TimeUnit.SECONDS), name + " has not ended after " + seconds + " s; see " + log);
  }

  /** With what it has ended. */
  int status() {
    return process.exitValue();
  }

  File log() {
    return log;
  }

  /** Insists at once: what is lost by it is none of a test that is over. */
  @Override
  public void close() {
    if (process != null) {
      process.destroyForcibly();
    }
  }
}
