"""A rolling upgrade of three NameNodes, and the way back, while a client writes by whichever leads. Needs no Java."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), f"{os.path.dirname(HERE)}/ha"]
from ha import IDS, Three, until  # noqa: E402

DATANODES = 3
FILE_LEN = 50_000


class Upgraded(Three):
    """Three NameNodes whose program is replaced; commands are those of the new one."""

    def __init__(self, former, new, folder):
        self.new = new
        super().__init__(former, folder, None)
        try:
            self.until_all_vote()
            self.start_datanodes(DATANODES)
        except BaseException:
            self.stop()
            raise

    def run(self, *words):
        was = self.cairn
        self.cairn = was if "namenode" in words else self.new
        try:
            return super().run(*words)
        finally:
            self.cairn = was

    def ends(self, name):
        process = self.processes.pop(name)
        process.terminate()
        process.wait()

    def are_ready(self):
        """Whether all vote and have what there is, and serve well, or would if they led."""
        try:
            told = self.run("--json", "admin", "members")
        except AssertionError:
            return False
        members = {member["name"]: member for member in map(json.loads, told.splitlines())}
        if set(members) != set(IDS) or sum(it["role"] == "leader" for it in members.values()) != 1:
            return False
        return all(it["votes"] and not it["lag"] and it["ready"] for it in members.values())

    def replace(self, program):
        """Has another program run, server by server: whoever leads comes last, and has another one lead before it ends."""
        self.cairn = program
        leader = until("somebody leads", self.leader)
        for name in [name for name in IDS if name != leader] + [leader]:
            self.ends(name)
            self.start(name)
            until(f"{name} and the others are ready", self.are_ready, 90)
        for number in range(DATANODES):
            self.ends(f"datanode-{number}")
            self.start_datanode(number)
            until(f"DataNode {number} serves again", lambda: self.live() == DATANODES)
            until("the members have its replicas", self.are_ready, 90)

    def rolling_upgrade(self, what):
        return self.run("admin", "rolling-upgrade", what)

    def digest(self, path):
        return hashlib.sha256(self.run("fs", "cat", path).encode()).hexdigest()


class Writer(threading.Thread):
    """Writes files in a folder, one after the other, until it is told to end."""

    def __init__(self, three, folder):
        super().__init__()
        three.run("fs", "mkdir", folder)
        self.three, self.folder = three, folder
        self.written, self.failed, self.ends = {}, [], threading.Event()
        self.start()

    def run(self):
        while not self.ends.is_set():
            path = f"{self.folder}/{len(self.written) + len(self.failed)}"
            text = os.urandom(FILE_LEN // 2).hex()
            source = f"{self.three.folder}/source"
            with open(source, "w") as out:
                out.write(text)
            command = [self.three.new, "--conf", self.three.conf, "fs", "put", source, path]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                self.written[path] = hashlib.sha256(text.encode()).hexdigest()
            else:
                self.failed.append((path, done.stderr))

    def until_more(self):
        before = len(self.written)
        until("the client goes on writing", lambda: len(self.written) > before + 5)

    def end(self):
        """Stops it. No call has failed."""
        self.ends.set()
        self.join()
        assert self.written and not self.failed, self.failed
        return self.written


def check(three, files):
    """All files are there, whole, and nothing else is in their folders."""
    for path, digest in files.items():
        assert three.digest(path) == digest, f"{path} has other bytes"
    for folder in {os.path.dirname(path) for path in files}:
        there = three.run("fs", "ls", folder).splitlines()
        count = sum(os.path.dirname(path) == folder for path in files)
        assert sum(f"{folder}/" in line for line in there) == count, f"{folder}: {there}"


def begun(former, cairn, folder):
    """Three members with an upgrade that is prepared and of which all are replaced, files from before the preparation, and a
    client that writes meanwhile."""
    three = Upgraded(former, cairn, folder)
    try:
        first = Writer(three, "/before")
        first.until_more()
        before = first.end()
        three.run("admin", "safemode", "enter")
        three.rolling_upgrade("prepare")
        for name in IDS:
            until(f"{name} has a copy to go back to", lambda: os.path.isdir(f"{folder}/{name}/rollback"))
        writer = Writer(three, "/meanwhile")
        writer.until_more()
        three.replace(cairn)
        writer.until_more()
        assert "lasts since" in three.rolling_upgrade("query")
        return three, before, writer
    except BaseException:
        three.stop()
        raise


def finalized(former, cairn, folder):
    three, before, writer = begun(former, cairn, folder)
    try:
        three.rolling_upgrade("finalize")
        three.run("admin", "upgrade", "finalize")
        for name in IDS:
            until(f"{name} has given its copy up", lambda: not os.path.exists(f"{folder}/{name}/rollback"))
        leader = three.leader()
        three.kill(leader)
        writer.until_more()
        three.start(leader)
        until("all are ready", three.are_ready, 90)
        written = writer.end()
        check(three, {**before, **written})
        three.until_healthy()
        print(f"three, finalized: {len(written)} files written meanwhile, no call failed, none lost", flush=True)
    finally:
        three.stop()


def back(former, cairn, folder):
    three, before, writer = begun(former, cairn, folder)
    try:
        written = writer.end()
        three.run("fs", "rm", "-r", "/before")
        for name in list(three.processes):
            three.ends(name)
        three.cairn = former
        three.run(*three.member("nn1"), "--rollback", "--found-quorum")
        for name in IDS[1:]:
            shutil.rmtree(f"{folder}/{name}/quorum")
        for name in IDS:
            three.start(name)
        three.start_datanodes(DATANODES)
        until("all are ready", three.are_ready, 90)
        check(three, before)
        assert "/meanwhile" not in three.run("fs", "ls", "/")
        again = Writer(three, "/again")
        again.until_more()
        check(three, again.end())
        print(f"three, back: {len(before)} files as they were, {len(written)} that were written since are gone", flush=True)
    finally:
        three.stop()
