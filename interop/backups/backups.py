"""Backups that are made while Hadoop's client works, and what they restore.

In each phase one client does what every kind of operation can, or what the differential test draws from a seed, another one
writes files, and backups are made all the while: of changes, and of everything now and then. Between phases Hadoop's client
notes all that it sees. Then each of these moments is restored, and served with the DataNodes as they are by then: the client
must see what it saw, and no replica may have gone. Entries in between, which no client has looked at, are restored twice, from
the snapshot before and from the first one with all changes since; Hadoop's images of both must be the same.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import Cluster  # noqa: E402
from scene import differences, digest, digest_of, java, scene, told, xml_of  # noqa: E402

DATANODES = 9
# Units that give back the bytes of a group, and the length of a cell.
DATA_UNITS = re.compile(r"-(\d+)-(\d+)-(\d+)k$")


class Source(Cluster):
    """A cluster whose NameNode can be started on another folder."""

    def __init__(self, cairn, folder, keys={}):
        self.name = f"{folder}/name"
        super().__init__(cairn, folder, DATANODES, {"dfs.namenode.fs-limits.min-block-size": "1024", **keys})
        self.fs = self.common["fs.defaultFS"]
        self.disks = [f"{folder}/data-{number}" for number in range(DATANODES)]
        os.makedirs(f"{folder}/conf")
        for name, key in [("core-site.xml", self.fs), ("hdfs-site.xml", None)]:
            property = f"<property><name>fs.defaultFS</name><value>{key}</value></property>" if key else ""
            with open(f"{folder}/conf/{name}", "w") as file:
                file.write(f"<configuration>{property}</configuration>")

    def start_namenode(self):
        self.start("namenode", ["--data", self.name], self.namenode_keys)

    def serve(self, name, keys={}):
        """Starts the NameNode on a folder, and waits for the DataNodes, which go on running."""
        self.name = name
        self.namenode_keys = {**self.namenode_keys, **keys}
        self.start_namenode()
        self.until("the NameNode serves", self.serves)
        self.until_registered(DATANODES)

    def entry(self):
        """The last entry of the log."""
        beans = self.page("/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem")
        found = re.search(r"LastWrittenTransactionId\W+(\d+)", beans)
        return int(found.group(1))


class Writer:
    """Hadoop's client, writing files in a folder of its own until it is told to stop."""

    def __init__(self, source, folder):
        command = java(source.folder, "FailoverClient", f"{source.folder}/conf", "none", folder, "100")
        self.log = open(f"{source.folder}/writer.log", "ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        assert self.process.stdout.readline().strip() == "writes", "the writer does not begin"

    def answer(self):
        """Stops it, and has it read back what it has written."""
        answer, _ = self.process.communicate("stop\n", timeout=300)
        return json.loads(answer.splitlines()[-1])

    def end(self):
        answer = self.answer()
        assert answer["acknowledged"] > 0 and not answer["errors"] and not answer["lost"], answer
        return answer["acknowledged"]


class Backups(threading.Thread):
    """Makes backups one after the other until it is told to end; of each `every`, one is of everything."""

    def __init__(self, source, to, every):
        super().__init__()
        self.source, self.to, self.every = source, to, every
        self.made, self.failed, self.is_over = [], None, threading.Event()
        self.start()

    def run(self):
        try:
            while not self.is_over.is_set():
                self.made += back_up(self.source, self.to, len(self.made) % self.every == self.every - 1)
                self.is_over.wait(1.5)
        except Exception as error:
            self.failed = error

    def end(self):
        self.is_over.set()
        self.join()
        if self.failed:
            raise self.failed
        return self.made


def back_up(source, to, is_full):
    words = ["--json", "-D", f"dfs.namenode.http-address=127.0.0.1:{source.http}", "namenode", "backup", "--to", to]
    done = subprocess.run([source.cairn, "-D", f"fs.defaultFS={source.fs}", *words, *(["--full"] if is_full else [])],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Moment:
    """What there was after an entry, as Hadoop's client saw it."""

    def __init__(self, source):
        self.entry = source.entry()
        self.seen = scene(source.folder, "facts", source.fs)
        # Moments are told by the second.
        time.sleep(1.1)
        self.time = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        time.sleep(1.1)
        assert source.entry() == self.entry, "something goes on that nobody has asked for"


def work(source, seed):
    """What is done in each phase, one list of words after the other."""
    return [
        [["fill", "more"]],
        [["change"]],
        [["calls", str(seed), "700"], ["calls", str(seed + 1), "700"]],
        [["calls", str(seed + 2), "700"], ["calls", str(seed + 3), "700"]],
    ]


def play(source, backups, seed):
    """Has the clients work while backups are made. Returns the moments between the phases, and all backups."""
    moments, made = [], []
    for number, scenes in enumerate(work(source, seed)):
        writer = Writer(source, f"/written-{number}")
        maker = Backups(source, backups, 4)
        for words in scenes:
            scene(source.folder, words[0], source.fs, *words[1:])
        of_phase = maker.end()
        count = writer.end()
        made += of_phase
        moments.append(Moment(source))
        full = sum(1 for it in of_phase if it["path"] and "snapshot-" in it["path"])
        print(f"phase {number}: up to entry {moments[-1].entry}, {count} files written, "
              f"{len(of_phase)} backups, {full} of everything", flush=True)
    # The last moment is in no backup yet.
    made += back_up(source, backups, False)
    return moments, made


def restore(cairn, backups, data, *until):
    shutil.rmtree(data, ignore_errors=True)
    done = subprocess.run([cairn, "--json", "namenode", "restore", "--from", backups, "--data", data, *until],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def image(cairn, data):
    """Hadoop's image of a namespace, and its bytes."""
    path = f"{data}.fsimage"
    for name in [path, f"{path}.md5"]:
        if os.path.exists(name):
            os.remove(name)
    done = subprocess.run([cairn, "--json", "namenode", "export", "--data", data, "--fsimage", path],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(path, "rb") as file:
        return path, file.read()


def between(cairn, folder, backups, made, seed):
    """Entries that nobody has looked at, each by two ways."""
    first = min(it["last_entry"] for it in made)
    last = max(it["last_entry"] for it in made)
    alone = f"{folder}/alone"
    shutil.rmtree(alone, ignore_errors=True)
    shutil.copytree(backups, alone)
    snapshots = sorted(name for name in os.listdir(alone) if name.startswith("snapshot-"))
    assert len(snapshots) > 2, snapshots
    whole = []
    for path in [it["path"] for it in made if it["path"] and "snapshot-" in it["path"]][1:]:
        os.remove(f"{alone}/{os.path.basename(path)}")
        whole += [it["last_entry"] for it in made if it["path"] == path]
    entries = whole + random.Random(seed).sample(range(first, last + 1), 6)
    replayed = 0
    for entry in entries:
        images = []
        for number, source in enumerate([backups, alone]):
            data = f"{folder}/way-{number}"
            done = restore(cairn, source, data, "--until-entry", str(entry))
            assert done["entry"] == entry, done
            replayed += done["replayed"]
            checked = subprocess.run([cairn, "namenode", "check", "--data", data], capture_output=True, text=True)
            assert checked.returncode == 0, checked.stdout
            images.append(image(cairn, data))
        if images[0][1] != images[1][1]:
            differing = differences(xml_of(folder, images[0][0]).replace("><", ">\n<"),
                                    xml_of(folder, images[1][0]).replace("><", ">\n<"))
            print("\n".join(differing[:40]))
            raise AssertionError(f"entry {entry} is another one by changes alone")
    print(f"between: {len(entries)} entries are the same by two ways, {replayed} changes replayed", flush=True)


def numberless(xml):
    """An image without the numbers that jump ahead where an earlier state is gone on from."""
    return re.sub(r"<(genstampV2|lastAllocatedBlockId|txid|lastInodeId)>\d+</\1>", "", xml)


def end(cairn, folder, backups, source):
    """The last entry that the backups have is the source's last one."""
    data = f"{folder}/last"
    done = restore(cairn, backups, data)
    ours, theirs = (numberless(xml_of(folder, image(cairn, of)[0])) for of in (data, source.name))
    assert ours == theirs, differences(ours.replace("><", ">\n<"), theirs.replace("><", ">\n<"))[:40]
    print(f"end: entry {done['entry']} is what the folder of the NameNode itself has", flush=True)


def facts_but(text, is_left_out):
    """Facts without the lines that are left out."""
    return "\n".join(line for line in text.splitlines() if not is_left_out(line))


def on_disks(disks):
    """Lengths of the replicas on the disks, by number and stamp, and how many there are of each."""
    found = {}
    for disk in disks:
        for parent, _, names in os.walk(disk):
            for name in names:
                meta = re.fullmatch(r"blk_(-?\d+)_(\d+)\.meta", name)
                if meta and "/finalized" in parent:
                    data = f"{parent}/blk_{meta.group(1)}"
                    found.setdefault((int(meta.group(1)), int(meta.group(2))), []).append(os.path.getsize(data))
    return found


def is_there(line, replicas):
    """Whether the disks have what a line of facts tells of a file."""
    policy = re.search(r" ec=(\S+)", line).group(1)
    blocks = re.search(r" blocks=\[(.*?)\]", line).group(1)
    for block in filter(None, blocks.split(", ")):
        number, stamp, length = (int(part) for part in re.fullmatch(r"(-?\d+)_(\d+):(\d+)", block).groups())
        if policy == "-":
            if length not in replicas.get((number, stamp), []):
                return False
            continue
        units, parity, cell = (int(part) for part in DATA_UNITS.search(policy).groups())
        found = [unit for unit in range(units + parity)
                 if unit_length(unit, units, cell << 10, length) in replicas.get((number + unit, stamp), [])]
        # A unit without a byte need not be there.
        wanted = min(units, -(-length // (cell << 10)))
        if len(found) < wanted:
            return False
    return True


def unit_length(unit, units, cell, length):
    """Bytes of a unit of a group."""
    unit = 0 if unit >= units else unit
    stripes, rest = divmod(length, units * cell)
    return stripes * cell + max(0, min(cell, rest - unit * cell))


def look(source, moment, replicas):
    """Compares what the client sees with what it saw then, but for bytes that were changed in place since. Returns how many
    files these are."""
    missing = [line for line in moment.seen.splitlines() if " md5=" in line and not is_there(line, replicas)]
    changed = {line.split(" ")[1] for line in missing}

    def told_of(text):
        lines = []
        for line in text.splitlines():
            parts = line.split(" ")
            if parts[0] == "path" and parts[1] in changed:
                line = re.sub(r" md5=\S+", "", line)
            lines.append(line)
        return "\n".join(lines)

    differing = []

    def is_same():
        nonlocal differing
        differing = differences(told_of(moment.seen), told_of(scene(source.folder, "facts", source.fs)))
        return not differing

    try:
        source.until("the client sees what it saw", is_same, 40)
    except AssertionError:
        print("\n".join(differing[:40]))
        raise AssertionError(f"entry {moment.entry}: {len(differing)} facts are not as they were") from None
    return len(changed)


def back(cairn, source, backups, moments):
    """Serves each moment, the newest first, with what the DataNodes have by then."""
    source.kill("namenode")
    replicas, hashes = on_disks(source.disks), digest(source.disks)
    for number, moment in reversed(list(enumerate(moments))):
        data = f"{source.folder}/restored-{number}"
        by = ["--until-entry", str(moment.entry)] if number % 2 else ["--until", moment.time]
        done = restore(cairn, backups, data, *by)
        assert done["entry"] == moment.entry, (done, moment.entry)
        # The restored one is held by itself, and not by a delay.
        source.serve(data, {"dfs.namenode.startup.delay.block.deletion.sec": "0"})
        count = look(source, moment, replicas)
        told(cairn, source.fs, "admin", "safemode", "leave")
        # It looks each second for what is to be made more, or is too much.
        time.sleep(5)
        gone = [name for name, of in hashes.items() if digest_of(name) != of]
        assert not gone, f"replicas of entry {moment.entry} or later are gone or changed: {gone[:10]}"
        files = moment.seen.count(" md5=")
        print(f"entry {moment.entry}: {len(moment.seen.splitlines())} facts as they were, {files - count} files with their "
              f"bytes, {count} changed in place since; no replica is gone", flush=True)
        if number:
            source.kill("namenode")
    accept(cairn, source, moments, replicas)


def accept(cairn, source, moments, replicas):
    """The oldest is what is wanted: what it does not know goes, and it has all that is its own."""
    known = {part.split("_")[0] for part in re.findall(r"-?\d+_\d+(?=:\d)", moments[0].seen)}
    unknown = {number for number, _ in replicas if number > 0 and str(number) not in known}
    assert unknown, "everything is known"
    told(cairn, source.fs, "admin", "restored", "--accept")
    source.until("what belongs to nothing is gone",
                 lambda: not unknown & {number for number, _ in on_disks(source.disks)}, 90)
    look(source, moments[0], replicas)
    print(f"accepted: {len(unknown)} blocks that belong to nothing are gone, and nothing else", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--cairn", required=True, type=os.path.abspath)
    words.add_argument("--seed", type=int, default=1)
    options = words.parse_args()
    # Whatever was there at any time stays on the disks until it is compared.
    source = Source(options.cairn, f"{HERE}/target", {"dfs.namenode.startup.delay.block.deletion.sec": "86400"})
    backups = f"{source.folder}/backups"
    try:
        source.until_registered(DATANODES)
        moments, made = play(source, backups, options.seed)
        checked = subprocess.run([options.cairn, "namenode", "check", "--backups", backups], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout
        back(options.cairn, source, backups, moments)
        source.kill("namenode")
        source.name = f"{source.folder}/name"
        end(options.cairn, source.folder, backups, source)
        between(options.cairn, source.folder, backups, made, options.seed)
    finally:
        source.stop()


if __name__ == "__main__":
    main()
