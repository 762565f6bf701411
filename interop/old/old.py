"""Clients that know no erasure coding, on striped and contiguous directories."""

import argparse
import hashlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import Checks, Cluster, free_port  # noqa: E402

# Empty, less than a chunk, a cell and a bit, several groups of blocks of 2 MiB.
LENS = [0, 300, (1 << 20) + 17, 20_000_001]


def bytes_of(length, seed):
    block = hashlib.shake_128(str(seed).encode()).digest(min(length, 1 << 20))
    return (block * (length // max(1, len(block)) + 1))[:length]


class Java:
    """The shell of Hadoop 2.10.2."""

    name = "Hadoop 2.10.2"

    def __init__(self, fs):
        opens = ["java.lang", "java.util", "java.net", "java.nio", "sun.nio.ch"]
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opens]
        # Hadoop 2 takes its own defaults only if there is a file, if an empty one.
        with open(f"{HERE}/target/core-site.xml", "w") as file:
            file.write("<configuration/>")
        # It logs why a DataNode refuses it, and says less itself.
        with open(f"{HERE}/target/log4j.properties", "w") as file:
            file.write("log4j.rootLogger=INFO,err\nlog4j.appender.err=org.apache.log4j.ConsoleAppender\n"
                       "log4j.appender.err.target=System.err\nlog4j.appender.err.layout=org.apache.log4j.SimpleLayout\n")
        classes = f"{HERE}/target:{HERE}/target/lib/*"
        self.command = ["java", *opens, "-cp", classes, "org.apache.hadoop.fs.FsShell", "-fs", fs]

    def run(self, *words):
        return subprocess.run([*self.command, *words], capture_output=True)

    def read(self, path):
        return self.run("-cat", path)

    def write(self, local, path):
        return self.run("-put", local, path)

    def append(self, local, path):
        return self.run("-appendToFile", local, path)

    def list(self, path):
        return self.run("-ls", path)


class Go:
    """The command of github.com/colinmarc/hdfs."""

    name = "colinmarc/hdfs"

    def __init__(self, fs):
        self.environment = {**os.environ, "HADOOP_NAMENODE": fs.removeprefix("hdfs://"), "HADOOP_USER_NAME": "root"}

    def run(self, *words):
        return subprocess.run([f"{HERE}/target/hdfs", *words], capture_output=True, env=self.environment)

    def read(self, path):
        return self.run("cat", path)

    def write(self, local, path):
        return self.run("put", local, path)

    def list(self, path):
        return self.run("ls", "-l", path)


class Run(Checks):
    def __init__(self, cairn):
        super().__init__()
        self.folder = f"{HERE}/target/cluster"
        plain = f"127.0.0.1:{free_port()}"
        keys = {
            "cairn.namenode.plain.rpc-address": plain,
            "cairn.ec.contiguous.quiet-time": "0",
            "cairn.ec.contiguous.short-quiet-time": "0",
            "cairn.ec.contiguous.min-length": "1",
            "cairn.ec.contiguous.pays": "100",
        }
        self.cluster = Cluster(cairn, self.folder, 6, keys)
        self.plain = f"hdfs://{plain}"
        self.ordinary = self.cluster.common["fs.defaultFS"]

    def local(self, data):
        path = f"{self.folder}/local"
        with open(path, "wb") as file:
            file.write(data)
        return path

    def cairn(self, *words):
        return self.cluster.run(*words)

    def expect(self, done, data=None):
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        if data is not None:
            assert done.stdout == data, f"{len(done.stdout)} other bytes, {len(data)} are expected"

    def prepare(self):
        self.cluster.until_registered(6)
        for policy in ["RS-3-2-1024k", "RS-3-2-contiguous"]:
            self.cairn("ec", "-enablePolicy", "-policy", policy)
        self.cairn("fs", "mkdir", "/striped", "/contiguous", "/replicated")
        self.cairn("ec", "-setPolicy", "-path", "/striped", "-policy", "RS-3-2-1024k")
        self.cairn("ec", "-setPolicy", "-path", "/contiguous", "-policy", "RS-3-2-contiguous")
        for at, length in enumerate(LENS):
            self.cairn("fs", "-D", "dfs.blocksize=2097152", "put", self.local(bytes_of(length, at)), f"/striped/{at}")

    def policy(self, path):
        return self.cairn("ec", "-getPolicy", "-path", path).strip()

    def reads(self, client, when):
        for at, length in enumerate(LENS):
            self.check(f"{client.name} reads {length} striped bytes{when}",
                       lambda: self.expect(client.read(f"/striped/{at}"), bytes_of(length, at)))

    def writes(self, client, number):
        data = bytes_of(5_000_017, f"written {number}")
        for folder in ["striped", "contiguous", "replicated"]:
            def written():
                path = f"/{folder}/written-{number}"
                self.expect(client.write(self.local(data), path))
                self.expect(client.read(path), data)
                assert self.cairn("fs", "checksum", path) and self.policy(path).startswith(policies[folder]), self.policy(path)
            policies = {"striped": "The", "contiguous": "RS-3-2-contiguous", "replicated": "The"}
            self.check(f"{client.name} writes to a {folder} directory and reads it", written)

    def lists(self, client):
        def listed():
            done = client.list("/striped")
            self.expect(done)
            for at, length in enumerate(LENS):
                assert any(f"{length}" in line and line.endswith(f"{at}") for line in done.stdout.decode().splitlines()), done.stdout
        self.check(f"{client.name} lists a striped directory", listed)

    def summed(self):
        def is_equal():
            for at in range(1, len(LENS)):
                sums = [subprocess.run([self.cluster.cairn, "fs", "--fs", fs, "-D", "dfs.checksum.combine.mode=COMPOSITE_CRC",
                                        "checksum", f"/striped/{at}"], capture_output=True, text=True)
                        for fs in [self.ordinary, self.plain]]
                assert all(done.returncode == 0 for done in sums), sums
                assert "COMPOSITE" in sums[0].stdout and sums[0].stdout == sums[1].stdout, sums
        self.check("composite checksums are equal by both addresses", is_equal)

    def refused(self, client, number):
        def is_refused():
            path = f"/striped/refused-{number}"
            done = client.write(self.local(bytes_of(5_000_000, "refused")), path)
            assert done.returncode != 0, "it says that it has written"
            assert b"knows no erasure coding" in done.stderr, done.stderr.decode()[-2000:]
            # Go's leaves the file that it has made, without bytes.
            left = [line.split() for line in self.cairn("fs", "ls", "/striped").splitlines() if line.endswith(path)]
            assert all(line[4] == "0" for line in left), left
            assert client.name != Java.name or not left, left
        self.check(f"{client.name} is refused to write striped files by the ordinary address", is_refused)

    def main(self):
        self.prepare()
        clients = [Java(self.plain), Go(self.plain)]
        for number, client in enumerate(clients):
            self.lists(client)
            self.reads(client, "")
            self.writes(client, number)
        self.summed()
        java = clients[0]
        def appended():
            more = bytes_of(70_000, "more")
            self.expect(java.append(self.local(more), "/striped/written-0"))
            self.expect(java.read("/striped/written-0"), bytes_of(5_000_017, "written 0") + more)
        self.check("Hadoop 2.10.2 appends to what it wrote in a striped directory", appended)
        for number, client in enumerate([Java(self.ordinary), Go(self.ordinary)]):
            self.refused(client, number)
        for number in [0, 1]:
            self.cluster.kill(f"datanode-{number}")
        for client in clients:
            self.reads(client, " with two DataNodes gone")
        self.cluster.stop()
        print(f"{self.failed} failed")
        return 1 if self.failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cairn", required=True, help="the program to test")
    run = Run(os.path.abspath(parser.parse_args().cairn))
    try:
        status = run.main()
    finally:
        run.cluster.stop()
    sys.exit(status)
