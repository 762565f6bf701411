"""A cluster of Hadoop's, its image, and the same disks under Cairn's NameNode."""

import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import free_port  # noqa: E402

HADOOP = f"{HERE}/../hadoop/target"
GOLDEN = f"{HERE}/../../crates/fsimage/tests/golden"


def java(folder, name, *words):
    classes = f"{HADOOP}/classes:{HADOOP}/lib/*"
    options = ["-Xmx1200m", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true", f"-Dinterop.log={folder}/client.log"]
    return ["java", *options, "-cp", classes, f"cairn.interop.{name}", *words]


class Daemons:
    """Daemons of Hadoop's in one process, which tells what there is, and takes lines."""

    def __init__(self, folder, *words):
        self.log = open(f"{folder}/{words[0]}.log", "ab")
        command = java(folder, "Daemons", *words)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.told = json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.write("stop\n")
        self.process.stdin.flush()
        self.process.wait()


class HadoopCluster:
    """Hadoop's NameNode and nine DataNodes in three racks."""

    def __init__(self, folder, keys={}):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        self.folder = folder
        keys = {"dfs.namenode.safemode.extension": "0", "dfs.namenode.fs-limits.min-block-size": "1024", **keys}
        keys = [part for key in keys.items() for part in ("-D", "=".join(key))]
        self.daemons = Daemons(
            folder, "cluster", "--datanodes", "9", "--racks", "3", "--data", f"{folder}/data",
            "--rpc-port", str(free_port()), "--http-port", str(free_port()), *keys)
        self.fs = self.daemons.told["fs"]

    def scene(self, what, *words):
        return scene(self.folder, what, self.fs, *words)

    def stop(self):
        self.daemons.stop()

    def image(self):
        current = f"{self.folder}/data/name/current"
        images = [name for name in os.listdir(current) if name.startswith("fsimage_") and not name.endswith(".md5")]
        return f"{current}/{max(images)}"


def scene(folder, what, fs, *words):
    command = java(folder, "Scene", what, fs, *words)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr[-5000:]}")
    return done.stdout


def golden(work):
    """Writes images and what a client saw anew."""
    zlib = {
        "dfs.image.compress": "true",
        "dfs.image.compression.codec": "org.apache.hadoop.io.compress.DefaultCodec",
    }
    for name, keys in [("hadoop-3.5.0", {}), ("hadoop-3.5.0-zlib", zlib)]:
        cluster = HadoopCluster(f"{work}/{name}", keys)
        cluster.scene("fill", "yes")
        with open(f"{GOLDEN}/{name}.facts", "w") as file:
            file.write(cluster.scene("facts"))
        cluster.scene("save")
        cluster.stop()
        shutil.copyfile(cluster.image(), f"{GOLDEN}/{name}.fsimage")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--golden", action="store_true")
    options = options.parse_args()
    work = f"{HERE}/target"
    os.makedirs(work, exist_ok=True)
    if options.golden:
        golden(work)


if __name__ == "__main__":
    main()
