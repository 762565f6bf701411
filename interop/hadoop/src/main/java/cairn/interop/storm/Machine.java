package cairn.interop.storm;

import java.io.IOException;
import java.util.Set;
import java.util.TreeSet;

/** A machine with one server, a process; and, with the right to have it, a network of its own. */
abstract class Machine {
  final String name;
  final String address;
  Process process;
  boolean isPaused;
  boolean isCut;

  /** Addresses that it cannot send to. */
  final Set<String> unreachable = new TreeSet<>();

  /** When a process was last started or could last not be heard, by {@link System#nanoTime}. */
  long disturbed = System.nanoTime();

  Machine(String name, String address) {
    this.name = name;
    this.address = address;
  }

  abstract void start() throws IOException;

  boolean isRunning() {
    return process != null && process.isAlive();
  }

  /** Whether it serves everybody and is heard by everybody, as far as faults go. */
  boolean isWell() {
    return isRunning() && !isPaused && !isCut && unreachable.isEmpty();
  }

  /** The end of its cable, which others see. */
  String cable() {
    return "to-" + name;
  }

  @Override
  public String toString() {
    return name;
  }

  void started(Process process) {
    this.process = process;
    isPaused = false;
    disturbed = System.nanoTime();
  }

  void kill() throws Exception {
    if (process != null) {
      process.destroyForcibly().waitFor();
    }
    isPaused = false;
    disturbed = System.nanoTime();
  }

  void pause(boolean paused) throws Exception {
    if (isRunning() && isPaused != paused) {
      Cluster.signal(process, paused ? "STOP" : "CONT");
      isPaused = paused;
      disturbed = System.nanoTime();
    }
  }

  void cut(boolean cut) throws Exception {
    if (isCut != cut) {
      Cluster.run("ip", "link", "set", cable(), cut ? "down" : "up");
      isCut = cut;
      disturbed = System.nanoTime();
    }
  }

  /** Whether it can send to an address. */
  void reach(String other, boolean reaches) throws Exception {
    if (reaches ? unreachable.remove(other) : unreachable.add(other)) {
      Cluster.run("ip", "-n", name, "route", reaches ? "del" : "add", "blackhole", other + "/32");
      disturbed = System.nanoTime();
    }
  }
}
