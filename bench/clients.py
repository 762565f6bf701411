"""Clients in long-lived processes that all know the same commands: Hadoop's in a JVM, Cairn's `benchclient`,
and the Rust library `hdfs-native` through its Python package."""

import os
import subprocess
import sys

from sides import HadoopClient, cpu_seconds, forget_peak, peak_mib, spawn, ROOT

BENCH = ROOT / "bench"
VENV = ROOT / "target" / "bench" / "venv"


class Refused(Exception):
    """A client says that it cannot do something."""


class Client:
    """One client of one system. `kind` is "hadoop", "cairn" or "hdfs-native". Hadoop's takes the system with each command,
    so `process` may be that of another one of its kind."""

    def __init__(self, kind, system, benchclient, log, process=None):
        self.kind, self.system, self.p, self.is_shared = kind, system, process, process is not None
        if process:
            return
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, "text": True}
        if kind == "cairn":
            namenode = system.uri.removeprefix("hdfs://")
            self.p = spawn([str(benchclient), namenode, os.environ.get("USER", "root")], **pipes)
        elif kind == "hdfs-native":
            self.p = spawn([str(native_python()), str(BENCH / "native.py"), system.uri], **pipes)
        else:
            self.p = HadoopClient(log).p

    def ask(self, what, *words):
        """The numbers that a command answers with; `Refused` with its message if it fails."""
        words = [what, *([self.system.uri] if self.kind == "hadoop" else []), *map(str, words)]
        self.p.stdin.write(" ".join(words) + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline().strip() or "error: it has ended"
        if answer.startswith("error"):
            raise Refused(f"{' '.join(words)}: {answer}")
        return [float(word) for word in answer.split()]

    def __call__(self, *words):
        try:
            return self.ask(*words)
        except Refused as refused:
            sys.exit(f"{self.system.name}'s client: {refused}")

    def cpu_seconds(self):
        return cpu_seconds(self.p.pid)

    def peak_mib(self):
        return peak_mib(self.p.pid)

    def forget_peak(self):
        forget_peak(self.p.pid)

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def own(system, args, log):
    """A system's own client."""
    return Client(system.name, system, args.benchclient, log)


def native_python():
    """The Python of a virtual environment that has `hdfs-native`; made where that has not happened yet."""
    python, wanted = VENV / "bin" / "python", BENCH / "requirements.txt"
    done = VENV / ".complete"
    if not done.exists() or done.stat().st_mtime < wanted.stat().st_mtime:
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted],
                       check=True, stdin=subprocess.DEVNULL)
        done.touch()
    return python


LIMITS = ("memory copy", "loopback TCP", "page cache write", "disk write", "round trip 4 KiB", "round trip 64 KiB")


def limits(benchclient, folder):
    """What this machine can do: bytes a second, and seconds of a round trip over loopback TCP; empty without Cairn's
    client, which measures."""
    if not os.access(benchclient, os.X_OK):
        return {}
    done = subprocess.run([str(benchclient), "127.0.0.1:1", "root"], input=f"limits {folder}\n", text=True,
                          capture_output=True)
    if done.returncode != 0 or done.stdout.startswith("error"):
        sys.exit(f"the limits of this machine: {done.stdout} {done.stderr}")
    return dict(zip(LIMITS, map(float, done.stdout.split())))
