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
            "cairn.ec.contiguous.dead-share": "0.3",
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
        self.plain_again(files)
        self.check("what lives in containers of which much is dead goes into others", self.packed_anew)
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

        def concatenated():
            parts = [f"/small/2/f{at}" for at in (14, 18, 22)]
            self.hadoop("-concat", *parts)
            joined = b"".join(files.pop(f"2/f{at}") for at in (14, 18, 22))
            files["2/f14"] = joined
            assert self.hadoop("-cat", "/small/2/f14") == joined

        def deleted():
            self.cluster.run("admin", "allow-snapshot", "/small")
            self.hadoop("-createSnapshot", "/small", "s")
            self.hadoop("-rm", "-skipTrash", "/small/0/f8")
            assert self.hadoop("-cat", "/small/.snapshot/s/0/f8") == files.pop("0/f8")

        self.check("what is appended to a packed file is read behind it", appended)
        self.check("a packed file is read under another name", renamed)
        self.check("packed files are put together", concatenated)
        self.check("a snapshot has a packed file that was deleted", deleted)

    def plain_again(self, files):
        """What asks for blocks of their own: cutting off, more copies, and an operator."""
        run = self.cluster.run

        def packed():
            return self.status()["packed_blocks"]

        def cut_off():
            before = packed()
            length = len(files["1/f13"]) - 100
            self.hadoop("-truncate", "-w", str(length), "/small/1/f13")
            files["1/f13"] = files["1/f13"][:length]
            assert self.hadoop("-cat", "/small/1/f13") == files["1/f13"]
            with open(f"{self.folder}/more", "wb") as file:
                file.write(b"behind")
            self.hadoop("-appendToFile", f"{self.folder}/more", "/small/1/f13")
            files["1/f13"] += b"behind"
            assert self.hadoop("-cat", "/small/1/f13") == files["1/f13"]
            assert b"/f13" in self.hadoop("-ls", "/small/1") and packed() <= before

        def more_copies():
            self.hadoop("-setrep", "-w", "4", "/small/3/f15")
            assert self.hadoop("-cat", "/small/3/f15") == files["3/f15"]
            assert "Being unpacked" in run("ec", "status")

        def unpacked():
            tried = json.loads(run("ec", "unpack", "--dry-run", "/small/0", "--json"))
            assert tried["packed_blocks"] > 10, tried
            done = json.loads(run("ec", "unpack", "--wait", "/small/0", "--json"))
            assert done["packed_blocks"] == tried["packed_blocks"], (tried, done)
            left = json.loads(run("ec", "unpack", "--dry-run", "/small/0", "--json"))
            assert left["packed_blocks"] == 0, left
            report = run("fsck", "/small/0", "-files", "-blocks")
            assert "HEALTHY" in report, report
            self.reads({name[2:]: data for name, data in files.items() if name.startswith("0/")}, "/small/0")

        def converted():
            done = run("ec", "convert", "--replicate", "/small/3")
            self.cluster.until("nothing of it is packed",
                               lambda: json.loads(run("ec", "unpack", "--dry-run", "/small/3", "--json"))["packed_blocks"] == 0, 60)
            self.reads({name[2:]: data for name, data in files.items() if name.startswith("3/")}, "/small/3")
            assert "refused" not in done, done

        def charged():
            run("admin", "set-space-quota", "100m", "/small/1")
            used = self.hadoop("-count", "-q", "/small/1").split()
            run("admin", "clear-space-quota", "/small/1")
            length, copies = sum(len(data) for name, data in files.items() if name.startswith("1/")), 3
            taken = int(used[2]) - int(used[3])
            assert length * 5 // 3 - 1000 <= taken < length * copies, (used, length)

        self.check("a packed file is cut off, and goes on behind that", cut_off)
        self.check("a packed file gets as many copies as are asked for", more_copies)
        self.check("an operator has packed files be plain again", unpacked)
        self.check("packed files are converted to copies", converted)
        self.check("packed files count against quotas with their part of the parities", charged)

    def packed_anew(self):
        """Half of what is packed is deleted: what is left goes into other containers, and the space of the old ones comes back."""
        local = f"{self.folder}/anew"
        files = {f"f{at}": bytes_of(20_000, ("anew", at)) for at in range(160)}
        os.makedirs(local)
        for name, data in files.items():
            with open(f"{local}/{name}", "wb") as file:
                file.write(data)
        def is_packed():
            tried = json.loads(self.cluster.run("ec", "unpack", "--dry-run", "/small/anew", "--json"))
            return tried["packed_blocks"] == len(files) and self.status()["packed_with_copies"] == 0

        space = self.stored()
        self.hadoop("-put", local, "/small/anew")
        self.cluster.until("all is packed", is_packed, 180)
        full = self.stored() - space
        for name in [f"f{at}" for at in range(0, 160, 2)]:
            files.pop(name)
        self.hadoop("-rm", "-skipTrash", *[f"/small/anew/f{at}" for at in range(0, 160, 2)])
        try:
            self.cluster.until("the space of what was deleted is back",
                               lambda: is_packed() and self.stored() - space < 0.65 * full, 180)
        except AssertionError:
            print(full, self.stored() - space, self.cluster.run("ec", "status"))
            raise
        print(f"        {full} bytes on disk, {self.stored() - space} after half was deleted, {self.status()['emptied']} containers emptied")
        assert self.status()["emptied"] > 0
        self.reads(files, "/small/anew")
        self.hadoop("-rm", "-r", "-skipTrash", "/small/anew")

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
