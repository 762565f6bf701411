"""What a cluster has, as Hadoop's client sees it and as it lies on the disks of DataNodes."""

import hashlib
import os
import re
import subprocess
import time

HADOOP = f"{os.path.dirname(os.path.abspath(__file__))}/hadoop/target"
CLASSES = f"{HADOOP}/classes:{HADOOP}/lib/*"


def java(folder, name, *words):
    options = ["-Xmx1200m", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true", f"-Dinterop.log={folder}/client.log"]
    return ["java", *options, "-cp", CLASSES, f"cairn.interop.{name}", *words]


def scene(folder, what, fs, *words):
    command = java(folder, "Scene", what, fs, *words)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr[-5000:]}")
    return done.stdout


def differences(before, after):
    """Lines of facts that are not alike; of files that were read the time of that changes. A directory that has quotas by type
    of storage only has the largest quota of names once Hadoop has read an image, its own as well, which limits nothing."""
    drop = re.compile(r" accessed=\d+|(?<= quota=)9223372036854775807(?=/)")
    before, after = ([drop.sub("", line.replace(" quota=-1/", " quota=/")) for line in text.splitlines()]
                     for text in (before, after))
    return [f"- {line}" for line in before if line not in after] + [f"+ {line}" for line in after if line not in before]


def xml_of(folder, image):
    """What Hadoop's viewer of images tells of one."""
    viewer = "org.apache.hadoop.hdfs.tools.offlineImageViewer.OfflineImageViewerPB"
    seen = f"{folder}/image.xml"
    done = subprocess.run(
        ["java", "-cp", CLASSES, viewer, "-p", "XML", "-i", image, "-o", seen], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(seen) as file:
        text = file.read()
    assert text.endswith("</fsimage>\n"), text[-300:]
    return text


def own_datanodes(cairn, fs, disks, log):
    words = [part for key in ["dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"]
             for part in ("-D", f"{key}=127.0.0.1:0")]
    with open(log, "ab") as log:
        command = [cairn, "datanode", "-D", f"fs.defaultFS={fs}", *words, "--data"]
        return [subprocess.Popen([*command, disk], stdout=log, stderr=log) for disk in disks]


def told(cairn, fs, *words):
    command = [cairn, words[0], "--fs", fs, *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr


def until(is_so, seconds=90):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.3)


def digest(folders):
    """Digests of all finalized replicas and units."""
    found = {}
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                if "/finalized" in parent:
                    found[f"{parent}/{name}"] = digest_of(f"{parent}/{name}")
    assert found
    return found


def digest_of(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
