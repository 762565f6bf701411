"""What the benchmarks share: a system under test as processes, and Hadoop's client in a long-lived JVM."""

import ctypes
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
INTEROP = ROOT / "interop" / "hadoop" / "target"
CLASSPATH = f"{INTEROP}/classes:{INTEROP}/lib/*"
NODE_HEAP, NAME_HEAP, CLIENT_HEAP = "-Xmx512m", "-Xmx1g", "-Xmx2g"


# Ports from which `free_port` takes. Outgoing connections are given ports of the ephemeral range: one that is free
# now may be taken by the time that a server binds it.
FIRST_PORT = 10_000
EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
_handed_out = set()

# Of Linux since 5.14; Python has no name for it.
MADV_POPULATE_WRITE = 23


def free_port():
    """A free port outside the ephemeral range, another one each time."""
    end = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else 32_768
    for _ in range(10_000):
        port = random.randrange(FIRST_PORT, max(end, FIRST_PORT + 1000))
        if port in _handed_out:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port
    sys.exit("no port is free")


def site(path, keys):
    rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in keys.items())
    path.write_text(f"<configuration>{rows}</configuration>\n")


# Seconds in which a system must be ready to serve.
START_TIMEOUT = 300
# Seconds in which DataNodes that are to delete blocks must have deleted one more.
DELETION_TIMEOUT = 60


PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def spawn(command, **options):
    """Starts a process that the kernel kills when this one ends, however it ends."""
    us = os.getpid()

    def die_with_us():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != us:
            os._exit(1)

    return subprocess.Popen(command, preexec_fn=die_with_us, **options)


def end_in_order():
    """Has a benchmark that is told to end stop its systems and keep its figures, as Ctrl-C has."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("told to end"))


def cpu_seconds(pid):
    """User and system time so far of a process, of all its threads."""
    # The clock of another process's processor time, as `clock_getcpuclockid` makes it.
    return time.clock_gettime(~pid << 3 | 2)


def peak_mib(pid):
    """Peak resident memory of a process, since `forget_peak`."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def forget_peak(pid):
    """Has the peak of a process's memory count from now."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")


class Loopback:
    """All processes on this machine's own address: each DataNode has ports of its own."""

    name_address = "127.0.0.1"

    def __init__(self, datanodes):
        self.ports = [[free_port() for _ in range(3)] for _ in range(datanodes)]

    def keys(self, index):
        """Configuration that gives a DataNode its addresses."""
        roles = ("dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address")
        return {key: f"127.0.0.1:{port}" for key, port in zip(roles, self.ports[index])}

    def on(self, index):
        """What to put before a command so that it runs on a DataNode's host; None is the NameNode's and the clients'."""
        return []


class System:
    """One system under test: its processes, and the commands of its own client."""

    def __init__(self, name, work, datanodes, keys, node_keys, role, client, net=None):
        self.name, self.work, self.role, self.client = name, work, role, client
        self.node_keys, self.datanodes = node_keys, datanodes
        self.net = net or Loopback(datanodes)
        self.conf = work / "conf"
        self.conf.mkdir(parents=True)
        rpc = free_port()
        self.uri = f"hdfs://{self.net.name_address}:{rpc}"
        self.http = f"{self.net.name_address}:{free_port()}"
        site(self.conf / "core-site.xml", {"fs.defaultFS": self.uri})
        site(
            self.conf / "hdfs-site.xml",
            {
                **keys,
                "dfs.namenode.rpc-address": f"{self.net.name_address}:{rpc}",
                "dfs.namenode.http-address": self.http,
            },
        )
        self.processes = []

    def spawn(self, role, folder, heap, keys, host=None):
        command = self.net.on(host) + self.role(role, heap) + ["--conf", str(self.conf)]
        for volume in self.volumes(folder) if role == "datanode" else [self.work / folder]:
            command += ["--data", str(volume)]
        for k, v in keys.items():
            command += ["-D", f"{k}={v}"]
        log = open(self.work / f"{folder}.log", "ab")
        self.processes.append(spawn(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def volumes(self, folder):
        """Where a DataNode keeps blocks."""
        return [self.work / folder]

    def start(self):
        self.processes = []
        self.spawn("namenode", "name", NAME_HEAP, {})
        for i in range(self.datanodes):
            self.spawn("datanode", f"dn{i}", NODE_HEAP, {**self.net.keys(i), **self.node_keys}, i)

    def has_lost_one(self):
        """Whether a process has ended."""
        return any(p.poll() is not None for p in self.processes)

    def kill(self, index):
        """Kills a DataNode without warning."""
        self.processes[index + 1].kill()
        self.processes[index + 1].wait()

    def stop(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def peak_mib(self, index):
        """Peak resident memory of one process: 0 is the NameNode, others are DataNodes."""
        return peak_mib(self.processes[index].pid)

    def cpu_by_role(self):
        """User and system time so far of the NameNode, and of all DataNodes that run."""
        running = [(i, p.pid) for i, p in enumerate(self.processes) if p.poll() is None]
        return {"NameNode": sum(cpu_seconds(pid) for i, pid in running if i == 0),
                "DataNodes": sum(cpu_seconds(pid) for i, pid in running if i > 0)}

    def cpu_seconds(self):
        """User and system time so far of all its processes that run."""
        return sum(self.cpu_by_role().values())

    def block_files(self):
        """How many block files all DataNodes have, with those of checksums."""
        return sum(1 for _ in self.work.glob("dn*/current/BP-*/current/finalized/**/blk_*"))

    def own(self, *words):
        """Runs its own client as a command, start-up and all, and returns the seconds."""
        start = time.monotonic()
        command = self.net.on(None) + self.client(str(self.conf), words)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.name}'s own client: {words}: {done.stderr}")
        return time.monotonic() - start


# Keys of both NameNodes: nothing waits where nothing has to, and Hadoop takes policies with other cells.
KEYS = {"dfs.namenode.safemode.extension": "0", "dfs.namenode.redundancy.considerLoad": "false",
        "dfs.namenode.ec.userdefined.policy.allowed": "true"}


def makers(work, datanodes, cairn, stable=False, keys=(), net=Loopback):
    """How each system is made anew in its folder of `work`, by name, for `started`: Hadoop's released classes and a build
    of Cairn, with the same keys and the same durability of blocks. Both NameNodes sync their logs before they answer.
    `net` gives a number of DataNodes their addresses."""
    keys = {**KEYS, **dict(keys)}
    sync = {"dfs.datanode.synconclose": str(stable).lower()}
    durability = {"cairn.durability": "stable" if stable else "page-cache"}

    def fresh(name):
        shutil.rmtree(work / name, ignore_errors=True)
        return work / name

    return {
        "hadoop": lambda _: System("hadoop", fresh("hadoop"), datanodes, keys, sync,
                                   lambda role, heap: java(heap, "cairn.interop.Daemons", role), hadoop_client,
                                   net(datanodes)),
        "cairn": lambda _: System("cairn", fresh("cairn"), datanodes, keys, durability,
                                  lambda role, heap: [str(cairn), role],
                                  lambda conf, words: [str(cairn), "--conf", conf, "fs", *map(str, words)],
                                  net(datanodes)),
    }


def java(heap, main, *args, conf=""):
    return ["java", heap, "-Djava.net.preferIPv4Stack=true", "-Dlog4j.configuration=log4j-stderr.properties",
            "-cp", f"{conf}:{CLASSPATH}" if conf else CLASSPATH, main, *args]


def hadoop_client(conf, words):
    """The command line of `hdfs dfs`, as its start script puts it together."""
    if words[0] == "get":
        words = ["get", "-f", *words[1:]]
    return java(CLIENT_HEAP, "org.apache.hadoop.fs.FsShell", "-" + words[0], *map(str, words[1:]), conf=conf)


class HadoopClient:
    """Hadoop's client library in one long-lived JVM."""

    def __init__(self, log, prefix=(), conf=""):
        """`conf` is a folder with keys of its own, if it has any."""
        self.p = spawn([*prefix, *java(CLIENT_HEAP, "cairn.interop.BenchClient", conf=conf)], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=log, text=True)

    def ask(self, *words):
        """The answer of one command as text, which is an error if it begins so."""
        self.p.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().strip() or "error: it has ended"

    def __call__(self, *words):
        answer = self.ask(*words)
        if answer.startswith("error"):
            sys.exit(f"Hadoop's client: {' '.join(map(str, words))}: {answer}")
        numbers = [float(word) for word in answer.split()]
        return numbers[0] if len(numbers) == 1 else numbers

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def started(make, hadoop):
    """Starts a system that `make` builds, and waits until all its DataNodes serve; starts another one if a process
    ends instead, as it does when its port has been taken meanwhile."""
    for attempt in range(3):
        s = make(attempt)
        s.start()
        until = time.monotonic() + START_TIMEOUT
        while not s.has_lost_one() and time.monotonic() < until:
            if hadoop.ask("live", s.uri) in (str(s.datanodes), f"{s.datanodes}.0"):
                hadoop("ready", s.uri, s.datanodes)
                return s
            time.sleep(0.2)
        s.stop()
        print(f"  {s.name} did not start, see {s.work}", flush=True)
    sys.exit(f"{s.name} does not start")


def prepare():
    """Fetches Hadoop's jars and compiles the launcher where that has not happened yet."""
    end_in_order()
    subprocess.run([ROOT / "interop" / "run", "-m", "cairn.interop.BenchClient"], check=True, stdin=subprocess.DEVNULL)


def scratch(size):
    """A folder in memory with room for a file and its copy, or else on disk."""
    shm = pathlib.Path("/dev/shm")
    room = shm.is_dir() and shutil.disk_usage(shm).free > 2.5 * size
    return pathlib.Path(tempfile.mkdtemp(prefix="cairn-bench-", dir=shm if room else None))


def units(policy):
    """How many DataNodes a policy needs."""
    return 3 if policy == "3x" else sum(map(int, policy.split("-")[1:3]))


def same(a, b):
    return subprocess.run(["cmp", "-s", a, b]).returncode == 0


def touch(size):
    """Uses `size` bytes of free memory once, or three quarters of what is free. A virtual machine gives memory that is free
    back to its host, and whoever writes to it next pays for its return: 2.9 CPU s a GiB have been seen where 0.4 are
    usual. Which run that is would be chance. Large pages, so that what is given back is whole as well."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            size = min(size, int(line.split()[1]) * 1024 * 3 // 4)
    if size > 0:
        with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory.madvise(MADV_POPULATE_WRITE)


def settle(systems, size=0):
    """Waits until deleted blocks are gone and writes back what is dirty, so that no run pays for another; makes sure
    of `size` bytes of memory for the next one."""
    fewest, until = None, 0
    while left := {s.name: files for s in systems if (files := s.block_files())}:
        if fewest is None or sum(left.values()) < fewest:
            fewest, until = sum(left.values()), time.monotonic() + DELETION_TIMEOUT
        elif time.monotonic() > until:
            sys.exit(f"deleted blocks are still there: {left}")
        time.sleep(0.2)
    calm(size)


def calm(size):
    """The same where blocks are to stay: writes back what is dirty and makes sure of memory."""
    os.sync()
    touch(size)
