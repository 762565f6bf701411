"""Small files that Hadoop's client writes, packed into containers, and read by it."""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import Checks, Cluster  # noqa: E402

HADOOP = f"{HERE}/../hadoop/target"
DATANODES = 7
FILES = 200
# How often a server is killed while files are packed.
KILLS = 16


def bytes_of(length, seed):
    return hashlib.shake_128(str(seed).encode()).digest(length)


def tree(folder):
    """Files of a few hundred bytes to some hundred KB, most of them small, one empty; their bytes by their names."""
    dice = random.Random(43)
    lengths = [0, 1, 511, 512, 513] + [int(dice.lognormvariate(9.5, 1.2)) for _ in range(FILES - 5)]
    files = {f"{at % 4}/f{at}": bytes_of(min(length, 900_000), at) for at, length in enumerate(lengths)}
    for name, data in files.items():
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
    return files


class Run(Checks):
    def __init__(self, cairn, work, tokens):
        super().__init__()
        self.folder = f"{work}/{'tokens' if tokens else 'plain'}"
        self.cluster = Cluster(cairn, self.folder, DATANODES, {
            "cairn.ec.contiguous.quiet-time": "0",
            "cairn.ec.contiguous.short-quiet-time": "0",
            "cairn.ec.packing.enabled": "true",
            "cairn.ec.packing.container-size": "1m",
            "cairn.ec.packing.patience": "1",
            "dfs.block.access.token.enable": str(tokens).lower(),
        })
        self.fs = self.cluster.common["fs.defaultFS"]
        # Hadoop's shell wants files of this name.
        os.makedirs(f"{self.folder}/conf")
        for name in ("core-site.xml", "hdfs-site.xml"):
            with open(f"{self.folder}/conf/{name}", "w") as file:
                file.write("<configuration/>")

    def hadoop(self, *words):
        command = ["java", "-Xmx600m", "-XX:+UseSerialGC", f"-Dinterop.log={self.folder}/client.log",
                   "-cp", f"{self.folder}/conf:{HADOOP}/classes:{HADOOP}/lib/*", "org.apache.hadoop.fs.FsShell", "-fs", self.fs, *words]
        done = subprocess.run(command, capture_output=True)
        assert done.returncode == 0, f"{words}: {done.stderr.decode()[-2000:]}"
        return done.stdout

    def status(self):
        return json.loads(self.cluster.run("ec", "status", "--json"))

    def stored(self):
        """Bytes of block files and their sums."""
        found = 0
        for folder, _, names in os.walk(self.folder):
            found += sum(os.path.getsize(f"{folder}/{name}") for name in names if name.startswith("blk_"))
        return found

    def is_packed(self, count):
        status = self.status()
        return status["packed_blocks"] == count and status["packed_with_copies"] == 0

    def reads(self, files, at="/small"):
        local = f"{self.folder}/read"
        shutil.rmtree(local, ignore_errors=True)
        self.hadoop("-get", at, local)
        for name, data in files.items():
            with open(f"{local}/{name}", "rb") as file:
                assert file.read() == data, f"{name} has other bytes"
        assert sum(len(names) for _, _, names in os.walk(local)) == len(files), "other files are there"

    def sums(self):
        return sorted(self.hadoop("-checksum", *[f"/small/{number}/*" for number in range(4)]).splitlines())

    def all(self):
        cluster, local = self.cluster, f"{self.folder}/local"
        files = tree(local)
        cluster.until_registered(DATANODES)
        cluster.run("ec", "-enablePolicy", "-policy", "RS-3-2-contiguous")
        cluster.run("fs", "mkdir", "/small", "/copies")
        cluster.run("ec", "-setPolicy", "-path", "/small", "-policy", "RS-3-2-contiguous")
        # Copies of the same, to compare with.
        self.hadoop("-put", *[f"{local}/{number}" for number in range(4)], "/copies")
        copied = self.stored()
        cluster.run("ec", "pause", "form")
        self.hadoop("-put", *[f"{local}/{number}" for number in range(4)], "/small")
        sums = self.sums()
        cluster.run("ec", "resume", "form")
        blocks = sum(1 for data in files.values() if data)
        self.check("small files are packed, and their copies deleted",
                   lambda: cluster.until("all is packed", lambda: self.is_packed(blocks), 180))
        packed, length = self.stored() - copied, sum(map(len, files.values()))
        print(f"        {length} bytes: {copied / length:.2f} times as copies, {packed / length:.2f} times packed")
        self.check("packed files take less than copies", lambda: self.less(packed, 0.75 * copied))
        self.check("Hadoop's client reads them", lambda: self.reads(files))
        self.check("their checksums are the same", lambda: self.same(self.sums(), sums))
        self.changes(files)
        self.check("nothing is lost when servers are killed while small files are packed", self.killed)
        for number in (0, 1):
            cluster.kill(f"datanode-{number}")
        self.check("Hadoop's client reads them with two DataNodes gone", lambda: self.reads(files))

    def changes(self, files):
        def appended():
            with open(f"{self.folder}/more", "wb") as file:
                file.write(b"more")
            self.hadoop("-appendToFile", f"{self.folder}/more", "/small/1/f9")
            files["1/f9"] += b"more"
            assert self.hadoop("-cat", "/small/1/f9") == files["1/f9"]

        def renamed():
            self.hadoop("-mv", "/small/2/f10", "/small/3/f10")
            files["3/f10"] = files.pop("2/f10")
            assert self.hadoop("-cat", "/small/3/f10") == files["3/f10"]

        def deleted():
            self.cluster.run("admin", "allow-snapshot", "/small")
            self.hadoop("-createSnapshot", "/small", "s")
            self.hadoop("-rm", "-skipTrash", "/small/0/f8")
            assert self.hadoop("-cat", "/small/.snapshot/s/0/f8") == files.pop("0/f8")

        self.check("what is appended to a packed file is read behind it", appended)
        self.check("a packed file is read under another name", renamed)
        self.check("a snapshot has a packed file that was deleted", deleted)

    def killed(self):
        """Writes files, and kills the NameNode or a DataNode every second or so while they are packed."""
        files, dice, blocks = {}, random.Random(self.folder), self.status()["packed_blocks"]
        for turn in range(KILLS // 4):
            local = f"{self.folder}/killed-{turn}"
            more = {f"{turn}/f{at}": bytes_of(dice.randrange(1, 60_000), (turn, at)) for at in range(40)}
            os.makedirs(f"{local}/{turn}")
            for name, data in more.items():
                with open(f"{local}/{name}", "wb") as file:
                    file.write(data)
            self.hadoop("-mkdir", "-p", "/small/killed")
            self.hadoop("-put", f"{local}/{turn}", "/small/killed")
            files.update(more)
            for _ in range(4):
                time.sleep(dice.uniform(0.1, 1.5))
                name = dice.choice(["namenode"] + [f"datanode-{number}" for number in range(DATANODES)])
                self.cluster.kill(name)
                time.sleep(dice.uniform(0, 0.5))
                if name == "namenode":
                    self.cluster.start_namenode()
                else:
                    self.cluster.start_datanode(int(name.split("-")[1]))
            self.cluster.until("it serves", self.serves)
        # Not all may be: containers whose attempt was given up wait ten minutes for others of their kind.
        time.sleep(10)
        print(f"        {self.status()['packed_blocks']} of {blocks + len(files)} are packed")
        try:
            self.reads(files, "/small/killed")
        finally:
            self.hadoop("-rm", "-r", "-skipTrash", "/small/killed")

    def serves(self):
        try:
            return "OFF" in self.cluster.run("admin", "safemode", "get")
        except AssertionError:
            return False

    def less(self, one, other):
        assert one < other, f"{one} is not less than {other}"

    def same(self, found, expected):
        assert found == expected, f"{found[:3]} instead of {expected[:3]}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--cairn", required=True)
    options.add_argument("--work", default=f"{HERE}/target")
    options = options.parse_args()
    failed = 0
    for tokens in (False, True):
        print(f"--- {'with' if tokens else 'without'} block tokens", flush=True)
        run = Run(os.path.abspath(options.cairn), options.work, tokens)
        try:
            run.all()
        finally:
            run.cluster.stop()
        failed += run.failed
    print(f"{failed} failed")
    sys.exit(failed > 0)


main()
