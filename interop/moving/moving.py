"""A cluster of Hadoop's, its image, and the same disks under Cairn's NameNode; and the way back."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import free_port  # noqa: E402
from scene import CLASSES, differences, digest, digest_of, java, own_datanodes, scene, told, until, xml_of  # noqa: E402

# Of calls that are made of one, each draws others.
SEEDS = range(1, 7)
GOLDEN = f"{HERE}/../../crates/fsimage/tests/golden"


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

    def __init__(self, folder, keys={}, is_new=True):
        if is_new:
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

    def kill(self):
        self.daemons.process.kill()
        self.daemons.process.wait()

    def image(self):
        current = f"{self.folder}/data/name/current"
        images = [name for name in os.listdir(current) if name.startswith("fsimage_") and not name.endswith(".md5")]
        return f"{current}/{max(images)}"

    def log(self):
        """The part of the log that is being written."""
        current = f"{self.folder}/data/name/current"
        return f"{current}/{max(name for name in os.listdir(current) if name.startswith('edits_inprogress_'))}"


def golden(work):
    """Writes images and what a client saw anew."""
    zlib = {
        "dfs.image.compress": "true",
        "dfs.image.compression.codec": "org.apache.hadoop.io.compress.DefaultCodec",
    }
    for name, keys, has_all in [
        ("hadoop-3.5.0", {}, "yes"),
        ("hadoop-3.5.0-zlib", zlib, "yes"),
        ("hadoop-3.5.0-plain", {}, "no"),
        ("hadoop-3.5.0-moves", {}, "more"),
    ]:
        cluster = HadoopCluster(f"{work}/{name}", keys)
        cluster.scene("fill", has_all)
        with open(f"{GOLDEN}/{name}.facts", "w") as file:
            file.write(cluster.scene("facts"))
        cluster.scene("save")
        cluster.stop()
        shutil.copyfile(cluster.image(), f"{GOLDEN}/{name}.fsimage")


def golden_log(work):
    """Writes an image, the log behind it, and what a client saw after both anew."""
    cluster = HadoopCluster(f"{work}/log")
    cluster.scene("fill", "more")
    cluster.scene("save")
    shutil.copyfile(cluster.image(), f"{GOLDEN}/hadoop-3.5.0-log.fsimage")
    cluster.scene("change")
    with open(f"{GOLDEN}/hadoop-3.5.0-log.facts", "w") as file:
        file.write(cluster.scene("facts"))
    cluster.kill()
    with open(cluster.log(), "rb") as file:
        written = file.read()
    # Hadoop fills up by a megabyte at a time.
    with open(f"{GOLDEN}/hadoop-3.5.0-log.edits", "wb") as file:
        file.write(written.rstrip(b"\xff") + b"\xff" * 64)


def own_namenode(cairn, folder, data):
    """Starts Cairn's NameNode on what was imported, and has Hadoop's programs of `folder` know it. Returns its process, its
    address, the port of its pages, the keys that it has as words of a command, and the folder of Hadoop's keys."""
    rpc, http = free_port(), free_port()
    fs = f"hdfs://127.0.0.1:{rpc}"
    keys = {
        "dfs.namenode.rpc-address": f"127.0.0.1:{rpc}",
        "dfs.namenode.http-address": f"127.0.0.1:{http}",
        "dfs.namenode.fs-limits.min-block-size": "1024",
        "dfs.namenode.safemode.extension": "0",
    }
    words = [part for key in keys.items() for part in ("-D", "=".join(key))]
    with open(f"{folder}/cairn.log", "ab") as log:
        namenode = subprocess.Popen([cairn, "namenode", *words, "--data", data], stdout=log, stderr=log)
    conf = f"{folder}/data/conf"
    with open(f"{conf}/core-site.xml", "w") as file:
        file.write(f"<configuration><property><name>fs.defaultFS</name><value>{fs}</value></property></configuration>")
    return namenode, fs, http, words, conf


def moved(cairn, work):
    """Fills a cluster of Hadoop's, stops it, and reads it back under Cairn's NameNode, with the same disks."""
    hadoop = HadoopCluster(f"{work}/moved")
    hadoop.scene("fill", "more")
    before = hadoop.scene("facts")
    # As it is, more may follow: an image that is older than the log is refused.
    refused = subprocess.run(
        [cairn, "namenode", "import", "--fsimage", f"{work}/moved/data/name", "--data", f"{work}/moved/early"],
        capture_output=True, text=True)
    assert refused.returncode == 1 and "-saveNamespace" in refused.stderr, refused.stderr
    hadoop.scene("save")
    hadoop.stop()
    data = f"{work}/moved/cairn"
    command = [cairn, "namenode", "import", "--fsimage", f"{work}/moved/data/name", "--data", data, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout.strip())
    subprocess.run([cairn, "namenode", "check", "--data", data], check=True, stdout=subprocess.DEVNULL)
    disks = [f"{work}/moved/data/dn{number}" for number in range(9)]
    hashes = digest(disks)
    namenode, fs, http, words, conf = own_namenode(cairn, f"{work}/moved", data)
    try:
        # The same disks under DataNodes of Hadoop's, then of Cairn's.
        hadoops = Daemons(f"{work}/moved", "datanodes", "--conf", conf, "--data", ",".join(disks))
        until(lambda: "Safe mode is OFF" in told(cairn, fs, "admin", "safemode", "get"))
        compare("DataNodes of Hadoop's", before, scene(f"{work}/moved", "facts", fs))
        hadoops.stop()
        own = own_datanodes(cairn, fs, disks, f"{work}/moved/cairn.log")
        try:
            same("DataNodes of Cairn's", before, f"{work}/moved", cairn, fs, disks, hashes)
            print("moved: everything is as it was")
            again(cairn, f"{work}/moved", fs, http, words, namenode, data)
        finally:
            for process in own:
                process.kill()
                process.wait()
    finally:
        namenode.kill()
        namenode.wait()


def killed(cairn, work):
    """Kills a cluster of Hadoop's after operations of every kind, and reads it back under Cairn's NameNode."""
    opened = {"/log/open-renamed": (2 << 20) + 300, "/log/taken": 5050}
    crash(cairn, f"{work}/killed", [["change"]], opened)


def seeds(cairn, work):
    """The same after calls that are drawn from seeds, as the differential test makes them."""
    crash(cairn, f"{work}/seeds", [["calls", str(seed), "900"] for seed in SEEDS], {})


def crash(cairn, folder, scenes, opened):
    """Kills a cluster of Hadoop's that has done much since its image, and reads it back under Cairn's NameNode."""
    hadoop = HadoopCluster(folder)
    hadoop.scene("fill", "more")
    hadoop.scene("save")
    for words in scenes:
        hadoop.scene(*words)
    # Once it has read its image, it takes files with attributes for changed that are not.
    diffs = hadoop.scene("diffs")
    hadoop.kill()
    left = f"{folder}/left"
    shutil.copytree(f"{folder}/data/name", left)
    # What Hadoop's own NameNode makes of it.
    hadoop = HadoopCluster(folder, is_new=False)
    before = hadoop.scene("facts")
    hadoop.kill()
    data = f"{folder}/cairn"
    command = [cairn, "namenode", "import", "--fsimage", left, "--data", data, "--json"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 1 and "--edits" in refused.stderr, refused.stderr
    # Without its first part there is a gap.
    shutil.copytree(f"{left}/current", f"{folder}/gap")
    parts = sorted(name for name in os.listdir(f"{folder}/gap") if name.startswith("edits_"))
    with open(f"{folder}/gap/{parts[-1]}", "rb") as file:
        log = file.read()
    first = int(parts[-1].split("_")[-1])
    os.remove(f"{folder}/gap/{parts[-1]}")
    with open(f"{folder}/gap/edits_inprogress_{first + 1:019}", "wb") as file:
        file.write(log)
    refused = subprocess.run([*command, "--edits", f"{folder}/gap"], capture_output=True, text=True)
    assert refused.returncode == 1 and f"transaction {first} is missing" in refused.stderr, refused.stderr
    assert not os.path.exists(data) or not os.listdir(data), "something was made of a log with a gap"
    done = subprocess.run([*command, "--edits", left], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout.strip())
    subprocess.run([cairn, "namenode", "check", "--data", data], check=True, stdout=subprocess.DEVNULL)
    namenode, fs, http, words, conf = own_namenode(cairn, folder, data)
    disks = [f"{folder}/data/dn{number}" for number in range(9)]
    hadoops = Daemons(folder, "datanodes", "--conf", conf, "--data", ",".join(disks))
    try:
        until(lambda: "Safe mode is OFF" in told(cairn, fs, "admin", "safemode", "get"))
        compare("image and log", before, scene(folder, "facts", fs))
        differing = differences(diffs, scene(folder, "diffs", fs))
        print("\n".join(differing))
        assert not differing, f"{len(differing)} differences of snapshots are not as they were"
        for path, length in opened.items():
            told(cairn, fs, "debug", "recover-lease", "--path", path, "--retries", "20")
            found = told(cairn, fs, "fs", "du", path).split()[0]
            assert found == str(length), (path, found)
        again(cairn, folder, fs, http, words, namenode, data)
    finally:
        for process in [hadoops.process, namenode]:
            process.kill()
            process.wait()
    print(f"{os.path.basename(folder)}: everything is as Hadoop's own NameNode has it, and {len(diffs.splitlines())} differences of snapshots")


def same(by, before, folder, cairn, fs, disks, hashes):
    """Compares what is there, by Cairn's DataNodes, with what was; then it goes on."""
    until(lambda: told(cairn, fs, "report").count("normal") == len(disks))
    compare(by, before, scene(folder, "facts", fs))
    gone = [name for name, of in hashes.items() if digest_of(name) != of]
    assert not gone, f"replicas have changed: {gone}"
    # The file that was open is closed and has what its writer was told is safe.
    told(cairn, fs, "debug", "recover-lease", "--path", "/plain/open", "--retries", "20")
    opened = told(cairn, fs, "fs", "du", "/plain/open").split()[0]
    assert opened == str((1 << 20) + 100), opened
    for name in ["/plain/new", "/striped/wide/new"]:
        put = told(cairn, fs, "fs", "put", __file__, name)
        with open(__file__) as file:
            assert told(cairn, fs, "fs", "cat", name) == file.read(), put


def again(cairn, folder, fs, http, words, namenode, data):
    """What was written since goes back to Hadoop's NameNode with all the rest, snapshots as well, and that goes on."""
    told(cairn, fs, "admin", "restored", "--accept")
    fetched = fetch(folder, fs, http)
    assert fetched, "there is no image to fetch"
    views(folder, fetched)
    before, diffs = scene(folder, "facts", fs), scene(folder, "diffs", fs)
    namenode.terminate()
    namenode.wait()
    export(cairn, folder, data)
    words = [*words, "-D", "dfs.namenode.redundancy.interval.seconds=3600"]
    words += ["-D", "dfs.namenode.datanode.registration.ip-hostname-check=false"]
    hadoops = Daemons(folder, "namenode", "--conf", f"{folder}/data/conf", "--data", f"{folder}/name", *words)
    try:
        until(lambda: "Safe mode is OFF" in told(cairn, fs, "admin", "safemode", "get"))
        compare("Hadoop's NameNode, there and back,", before, scene(folder, "facts", fs))
        # Once it has read an image, Hadoop takes what has attributes for changed that is not.
        differing = [line for line in differences(diffs, scene(folder, "diffs", fs)) if not re.match(r"\+ .* M ", line)]
        assert not differing, f"differences of snapshots are not as they were: {differing}"
        # It goes on: what only the oldest snapshot has is given up, and there is another one, and an image.
        told(cairn, fs, "fs", "delete-snapshot", "/moves", "s1")
        told(cairn, fs, "fs", "delete-snapshot", "/snap", "first")
        told(cairn, fs, "fs", "create-snapshot", "/snap", "onward")
        told(cairn, fs, "fs", "mv", "/snap/kept", "/plain/kept")
        scene(folder, "save", fs)
        scene(folder, "facts", fs)
    finally:
        hadoops.process.kill()
        hadoops.process.wait()
    print(f"again: everything went there and back, {len(diffs.splitlines())} differences of snapshots as well")


def back(cairn, work):
    """Fills a cluster of Cairn's, stops it, and reads it back under Hadoop's NameNode, with the same disks."""
    folder = f"{work}/back"
    shutil.rmtree(folder, ignore_errors=True)
    disks = [f"{folder}/dn{number}" for number in range(9)]
    os.makedirs(f"{folder}/conf")
    rpc, http = free_port(), free_port()
    fs = f"hdfs://127.0.0.1:{rpc}"
    keys = {
        "fs.defaultFS": fs,
        "dfs.namenode.rpc-address": f"127.0.0.1:{rpc}",
        "dfs.namenode.http-address": f"127.0.0.1:{http}",
        "dfs.namenode.fs-limits.min-block-size": "1024",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    }
    words = [part for key in keys.items() for part in ("-D", "=".join(key))]
    with open(f"{folder}/conf/core-site.xml", "w") as file:
        file.write(f"<configuration><property><name>fs.defaultFS</name><value>{fs}</value></property></configuration>")
    with open(f"{folder}/conf/hdfs-site.xml", "w") as file:
        file.write("<configuration></configuration>")
    data = f"{folder}/cairn"
    with open(f"{folder}/cairn.log", "ab") as log:
        namenode = subprocess.Popen([cairn, "namenode", *words, "--data", data], stdout=log, stderr=log)
    own = own_datanodes(cairn, fs, disks, f"{folder}/cairn.log")
    try:
        until(lambda: told(cairn, fs, "report").count("normal") == len(disks))
        scene(folder, "fill", fs, "more")
        before = scene(folder, "facts", fs)
        fetched = fetch(folder, fs, http)
        assert fetched, "there is no image to fetch"
    finally:
        for process in [*own, namenode]:
            process.terminate()
            process.wait()
    image = export(cairn, folder, data)
    views(folder, image)
    views(folder, fetched)
    hashes = digest(disks)
    # It would make up for nodes that come a moment later than others, and then have what is too much deleted.
    words += ["-D", "dfs.namenode.redundancy.interval.seconds=3600"]
    hadoops = Daemons(folder, "namenode", "--conf", f"{folder}/conf", "--data", f"{folder}/name", *words)
    try:
        nodes = Daemons(folder, "datanodes", "--conf", f"{folder}/conf", "--data", ",".join(disks))
        until(lambda: "Safe mode is OFF" in told(cairn, fs, "admin", "safemode", "get"))
        compare("Hadoop's NameNode and DataNodes", before, scene(folder, "facts", fs))
        nodes.stop()
        own = own_datanodes(cairn, fs, disks, f"{folder}/cairn.log")
        try:
            same("Hadoop's NameNode and Cairn's DataNodes", before, folder, cairn, fs, disks, hashes)
        finally:
            for process in own:
                process.kill()
                process.wait()
    finally:
        hadoops.process.kill()
        hadoops.process.wait()
    print("back: everything is as it was")


def export(cairn, folder, data):
    """Writes the folder of Hadoop's NameNode; the image in it."""
    command = [cairn, "namenode", "export", "--data", data, "--folder", f"{folder}/name", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout.strip())
    return json.loads(done.stdout)["image"]


def fetch(folder, fs, http):
    """Has Hadoop's command fetch an image of the NameNode that serves; none if that has none to give."""
    fetched = f"{folder}/fetched"
    shutil.rmtree(fetched, ignore_errors=True)
    os.makedirs(fetched)
    command = ["java", "-cp", CLASSES, "org.apache.hadoop.hdfs.tools.DFSAdmin"]
    command += ["-D", f"dfs.namenode.http-address=127.0.0.1:{http}", "-fs", fs, "-fetchImage", fetched]
    done = subprocess.run(command, capture_output=True, text=True)
    names = os.listdir(fetched)
    assert (done.returncode == 0) == (len(names) == 1), done.stdout + done.stderr
    return f"{fetched}/{names[0]}" if names else None


def views(folder, image):
    """Has Hadoop's viewer of images read one."""
    assert "<name>several blocks</name>" in xml_of(folder, image)


def compare(what, before, after):
    assert before.count("path ") > 20, before
    differing = differences(before, after)
    print("\n".join(differing), end="")
    assert not differing, f"with {what}, {len(differing)} facts are not as they were"
    print(f"moved: {what} give what was there before")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--golden", action="store_true")
    options.add_argument("--cairn", type=os.path.abspath)
    options.add_argument("--only", choices=["moved", "killed", "seeds", "back"])
    options = options.parse_args()
    work = f"{HERE}/target"
    os.makedirs(work, exist_ok=True)
    if options.golden:
        golden(work)
        golden_log(work)
    if options.cairn:
        for run in [moved, killed, seeds, back]:
            if options.only in (None, run.__name__):
                run(options.cairn, work)


if __name__ == "__main__":
    main()
