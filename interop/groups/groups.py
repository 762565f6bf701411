#!/usr/bin/env python3
"""Kills servers at each step of the life of contiguous groups and of packed blocks, and looks at what is left.

  interop/groups/run --cairn target/checked/cairn [--steps REGEX] [--sides datanode,namenode,both] [--seed N] [--few]

At each step the DataNode that does it, the NameNode, or both are killed (`kill -9`), at once or a moment later, and started
again, at once or when they are taken for dead. Then every byte that was acknowledged is read, `fsck` finds nothing, and when
all that the step has made is deleted, the DataNodes have what they had before, to the byte. A step is seen in the logs, or by
files that go.
"""

import argparse
import glob
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cluster import Checks, Cluster  # noqa: E402
from files import bytes_of, small_files  # noqa: E402

DATANODES = 7
MIB = 1 << 20
POLICY = "RS-3-2-contiguous"
# How long a step may take to come, and all to be as it should be afterwards.
STEP_SECONDS = 150
HEAL_SECONDS = 240
SIDES = ["datanode", "namenode", "both"]
# Steps of attempts that come again by themselves: in the end there is a group.
TRIED_AGAIN = ["begin", "encode", "encoded", "form", "drop"]
# What `--few` leaves out is much like what it has.
FEW = ["encode", "form", "drop", "renew", "truncate", "pack", "swap"]


class Told(Cluster):
    """Servers that log what they do."""

    def start(self, name, options, keys):
        super().start(name, ["--log", "info", *options], keys)


class Kept:
    """What was acknowledged, by path: for each the contents that it may have."""

    def __init__(self):
        self.files = {}

    def put(self, path, data):
        self.files[path] = [data]

    def check(self, path, found):
        allowed = self.files[path]
        assert any(found == data for data in allowed), f"{path}: {len(found)} other bytes, of {[len(data) for data in allowed]}"
        # What a reader has seen stays.
        self.files[path] = [found]


class Matrix:
    def __init__(self, cairn, folder, seed):
        self.folder, self.dice, self.kept = folder, random.Random(seed), Kept()
        self.cluster = Told(cairn, folder, DATANODES, {
            "cairn.ec.contiguous.quiet-time": "0",
            "cairn.ec.contiguous.short-quiet-time": "0",
            "cairn.ec.packing.enabled": "true",
            "cairn.ec.packing.container-size": "1m",
            "cairn.ec.packing.patience": "1",
        })
        self.base = 0
        self.offsets = {}

    # What the cluster is asked.

    def run(self, *words):
        return self.cluster.run(*words)

    def background(self, *words, **options):
        command = [self.cluster.cairn, words[0], "--fs", self.cluster.common["fs.defaultFS"], *words[1:]]
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "bufsize": 0, **options}
        return subprocess.Popen(command, **options)

    def status(self):
        return json.loads(self.run("ec", "status", "--json"))

    def replicas(self):
        """Files of finalized replicas, as (DataNode, block)."""
        found = set()
        for number in range(DATANODES):
            for path in glob.glob(f"{self.folder}/data-{number}/**/finalized/**/blk_*", recursive=True):
                if not path.endswith(".meta"):
                    found.add((number, int(os.path.basename(path)[4:])))
        return found

    def stored(self):
        """Bytes of all block files and their sums. Sums without a block are what a DataNode leaves that is killed while it
        deletes: its next walk over its folders removes them."""
        found = 0
        for path in glob.glob(f"{self.folder}/data-*/**/blk_*", recursive=True):
            if path.endswith(".meta") and not os.path.exists(path.rpartition("_")[0]):
                continue
            try:
                found += os.path.getsize(path)
            except FileNotFoundError:
                pass
        return found

    def is_settled(self):
        busy = ("attempts", "groups_with_surplus", "packed_with_copies", "unpacking", "dissolving_groups", "emptying_containers")
        try:
            status = self.status()
        except AssertionError:
            return False
        return all(status[key] == 0 for key in busy)

    def is_healthy(self):
        try:
            return "is HEALTHY" in self.run("fsck", "/")
        except AssertionError:
            return False

    # What is written.

    def put(self, path, data):
        local = f"{self.folder}/local"
        with open(local, "wb") as file:
            file.write(data)
        self.run("fs", "-D", f"dfs.blocksize={MIB}", "put", local, path)
        self.kept.put(path, data)

    def put_small(self, at, count=30):
        """Small files, in one command."""
        local = f"{self.folder}/small/{os.path.basename(at)}"
        for name, data in small_files(local, "f", count, self.dice).items():
            self.kept.put(f"{at}/{os.path.basename(at)}/{name}", data)
        # All are packed together: fewer than there are containers in a group would wait for others.
        self.run("ec", "pause", "form")
        self.run("fs", "put", local, at)
        self.run("ec", "resume", "form")

    def put_group(self, at, blocks=3):
        self.put(f"{at}/file", bytes_of(blocks * MIB, at))

    def put_members(self, at):
        for number in range(3):
            self.put(f"{at}/member-{number}", bytes_of(MIB, at, number))

    def until_grouped(self, groups):
        self.cluster.until("it is in groups", lambda: self.status()["groups"] >= groups and self.is_settled(), STEP_SECONDS)

    def until_packed(self, blocks):
        self.cluster.until("it is packed", lambda: self.status()["packed_blocks"] >= blocks and self.is_settled(), STEP_SECONDS)

    def remove(self, *paths):
        self.run("fs", "rm", "--recursive", "--skip-trash", *paths)
        for path in paths:
            for name in [name for name in self.kept.files if name == path or name.startswith(f"{path}/")]:
                del self.kept.files[name]

    # How a step is seen.

    def logs(self):
        return {name: f"{self.folder}/{name}.log" for name in ["namenode", *(f"datanode-{n}" for n in range(DATANODES))]}

    def mark(self):
        """From here on logs are looked at."""
        self.offsets = {name: os.path.getsize(path) for name, path in self.logs().items()}

    def until_told(self, words):
        """The server whose log has it first."""
        end = time.monotonic() + STEP_SECONDS
        while time.monotonic() < end:
            for name, path in self.logs().items():
                with open(path, "rb") as log:
                    log.seek(self.offsets[name])
                    if words.encode() in log.read():
                        return name
            time.sleep(0.002)
        raise AssertionError(f"no log has it: {words}")

    def until_gone(self):
        """The DataNode that is the first to delete a replica."""
        most, end = self.replicas(), time.monotonic() + STEP_SECONDS
        while time.monotonic() < end:
            now = self.replicas()
            if gone := most - now:
                return f"datanode-{min(gone)[0]}"
            most = now
        raise AssertionError("no replica goes")

    def told(self, words):
        return lambda at: self.until_told(words)

    def gone_after(self, words):
        def found(at):
            self.until_told(words)
            return self.until_gone()

        return found

    def after_a_moment(self, at):
        time.sleep(self.dice.uniform(0, 0.4))
        return None

    # Steps: what is there before, what is done, and how it is seen that it has come so far.

    def steps(self):
        nothing, told = (lambda at: None), self.told
        group, small = self.put_group, self.put_small
        return {
            "begin": (nothing, group, told("a contiguous group is to be encoded")),
            "encode": (nothing, group, told("encodes a group")),
            "encoded": (nothing, group, told("encoded a group")),
            "form": (nothing, group, told("a contiguous group is formed")),
            "drop": (nothing, group, self.gone_after("a contiguous group is formed")),
            "retire": (self.members, self.retire, lambda at: None),
            "renew": (self.members, self.retire, told("to take the place of one with dead members")),
            "supersede": (self.members, self.retire, told("a contiguous group is formed")),
            "dissolve": (self.members, self.retire_two, told("with dead members is dissolved")),
            "append": (self.grouped, self.append, self.after_a_moment),
            "truncate": (self.grouped, self.truncate, self.after_a_moment),
            "copies": (self.grouped, self.to_copies, self.after_a_moment),
            "groups": (self.copied, self.to_groups, told("encodes a group")),
            "relay": (self.held_open, self.read_on, self.after_a_moment),
            "decode": (self.grouped, self.read_without, self.after_a_moment),
            "pack": (nothing, small, told("writes a container")),
            "seal": (nothing, small, told("a container was read back as it should be")),
            "swap": (nothing, small, told("a contiguous group is formed")),
            "packed": (nothing, small, told("small blocks are packed")),
            "drop-packed": (nothing, small, self.gone_after("small blocks are packed")),
            "repack": (self.packed, self.remove_half, told("what lives in a container goes into others")),
            "emptied": (self.packed, self.remove_half, told("nobody needs a container any more")),
            "unpack": (self.packed, self.unpack, told("writes a replica of a packed block")),
        }

    def members(self, at):
        groups = self.status()["groups"]
        self.put_members(at)
        self.until_grouped(groups + 1)

    def grouped(self, at):
        groups = self.status()["groups"]
        self.put_group(at)
        self.until_grouped(groups + 1)

    def packed(self, at):
        blocks = self.status()["packed_blocks"]
        self.put_small(at)
        self.until_packed(blocks + 30)

    def copied(self, at):
        self.run("ec", "-setPolicy", "-path", at, "-replicate")
        self.put_group(at)

    def held_open(self, at):
        """A reader that has begun to read copies, which are in a group when it goes on."""
        self.run("ec", "pause", "form")
        self.put_group(at, 9)
        self.reader = self.background("fs", "cat", f"{at}/file", stdout=subprocess.PIPE)
        self.begun = self.reader.stdout.read(1000)
        groups = self.status()["groups"]
        self.run("ec", "resume", "form")
        self.until_grouped(groups + 2)

    def retire(self, at):
        self.remove(f"{at}/member-1")

    def retire_two(self, at):
        self.run("ec", "pause", "renew")
        self.remove(f"{at}/member-0", f"{at}/member-2")
        self.run("ec", "resume", "renew")

    def append(self, at):
        path, more = f"{at}/file", bytes_of(MIB + 100_000, at, "more")
        with open(f"{self.folder}/more", "wb") as file:
            file.write(more)
        was = self.kept.files[path][0]
        # However many of its bytes are there, when it is not acknowledged.
        self.pending = (path, [was + more], lambda found: found[:len(was)] == was and (was + more).startswith(found))
        self.writer = self.background("fs", "append", f"{self.folder}/more", path)

    def truncate(self, at):
        path = f"{at}/file"
        was = self.kept.files[path][0]
        short = was[:2 * MIB + self.dice.randrange(1, MIB)]
        self.pending = (path, [short], lambda found: found in (was, short))
        self.writer = self.background("fs", "truncate", "--wait", str(len(short)), path)

    def to_copies(self, at):
        self.background("ec", "convert", "--replicate", at)

    def to_groups(self, at):
        self.background("ec", "convert", "--policy", POLICY, at)

    def read_on(self, at):
        pass

    def read_without(self, at):
        """Reads without a DataNode that has a member; another one that has a unit goes meanwhile."""
        data = self.kept.files[f"{at}/file"][0]
        holders = {number for number, block in self.replicas() if block in self.blocks(f"{at}/file")}
        self.away = f"datanode-{self.dice.choice(sorted(holders))}"
        self.cluster.kill(self.away)
        self.reader = self.background("fs", "cat", f"{at}/file", stdout=subprocess.PIPE)
        self.begun = b""
        assert data

    def blocks(self, path):
        return {int(number) for number in re.findall(r"blk_(\d+)_", self.run("fsck", path, "-files", "-blocks"))}

    def remove_half(self, at):
        folder = f"{at}/{os.path.basename(at)}"
        self.remove(*[f"{folder}/f{number}" for number in range(0, 30, 2)])

    def unpack(self, at):
        self.background("ec", "unpack", at)

    # One cell of the matrix.

    def begin(self):
        cluster = self.cluster
        cluster.until_registered(DATANODES)
        self.run("ec", "-enablePolicy", "-policy", POLICY)
        self.run("fs", "mkdir", "/all")
        self.run("ec", "-setPolicy", "-path", "/all", "-policy", POLICY)
        # What stays, beside which all else comes and goes.
        self.run("fs", "mkdir", "/all/stays")
        self.put_group("/all/stays")
        self.until_grouped(1)
        self.put_small("/all/stays")
        self.until_packed(30)
        self.base = self.stored()

    def cell(self, step, side):
        before, act, seen = self.steps()[step]
        at = f"/all/{step}-{side}"
        self.pending = self.writer = self.reader = self.away = None
        # Whatever the last one has left.
        self.whole()
        groups = self.status()["groups"]
        self.run("fs", "mkdir", at)
        before(at)
        self.mark()
        act(at)
        worker = seen(at)
        self.kill(side, worker)
        self.end_of_calls(at)
        self.whole()
        self.reads()
        if step in TRIED_AGAIN:
            self.until_grouped(groups + 1)
        self.cluster.until("all is settled", lambda: self.is_settled() and self.is_healthy(), HEAL_SECONDS)
        self.reads()
        self.remove(at)
        self.space_is_back()

    def kill(self, side, worker):
        if worker in (None, "namenode"):
            worker = f"datanode-{self.dice.randrange(DATANODES)}"
        names = {"datanode": [worker], "namenode": ["namenode"], "both": ["namenode", worker]}[side]
        time.sleep(self.dice.choice([0, 0, self.dice.uniform(0, 0.2)]))
        for name in names:
            if name != self.away:
                self.cluster.kill(name)
        # As long as it takes to be dead, now and then.
        time.sleep(self.dice.choice([0, 0, 0.5, 14]))
        for name in names:
            if name != self.away:
                self.start(name)

    def start(self, name):
        if name == "namenode":
            self.cluster.start_namenode()
        else:
            self.cluster.start_datanode(int(name.split("-")[1]))

    def end_of_calls(self, at):
        if self.reader:
            found, _ = self.reader.communicate(timeout=STEP_SECONDS)
            found, data = self.begun + found, self.kept.files[f"{at}/file"][0]
            assert data.startswith(found), f"a reader got other bytes, of {len(found)}"
            assert self.reader.returncode != 0 or found == data, f"a reader got {len(found)} bytes of {len(data)}"
        if self.away:
            self.start(self.away)
        if self.writer:
            path, done, _ = self.pending
            # As in HDFS, what a NameNode had ordered to be cut off is ordered again when somebody wants the file closed.
            self.cluster.until("the call ends", lambda: self.has_ended(path), STEP_SECONDS)
            if self.writer.returncode == 0:
                self.kept.files[path] = done
                self.pending = None

    def whole(self):
        def serves():
            try:
                return "OFF" in self.run("admin", "safemode", "get")
            except AssertionError:
                return False

        self.cluster.until("the NameNode serves", serves, HEAL_SECONDS)
        self.cluster.until_registered(DATANODES)

    def reads(self):
        if self.pending:
            path, _, is_allowed = self.pending
            # Its lease may have to be recovered first.
            self.cluster.until("what was not acknowledged is closed", lambda: self.is_closed(path), HEAL_SECONDS)
            found = self.read(path)
            assert is_allowed(found), f"{path}: {len(found)} bytes that nobody wrote so"
            self.kept.files[path] = [found]
            self.pending = None
        local = f"{self.folder}/read"
        subprocess.run(["rm", "-rf", local], check=True)
        self.run("fs", "get", "/all", local)
        found = {}
        for folder, _, names in os.walk(local):
            for name in names:
                path = f"{folder}/{name}"
                with open(path, "rb") as file:
                    found["/all" + path[len(local):]] = file.read()
        assert sorted(found) == sorted(self.kept.files), f"other files: {set(found) ^ set(self.kept.files)}"
        for path, data in found.items():
            self.kept.check(path, data)

    def read(self, path):
        done = subprocess.run([self.cluster.cairn, "fs", "--fs", self.cluster.common["fs.defaultFS"], "cat", path], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def has_ended(self, path):
        try:
            self.writer.wait(20)
        except subprocess.TimeoutExpired:
            self.is_closed(path)
        return self.writer.poll() is not None

    def is_closed(self, path):
        try:
            self.run("debug", "recover-lease", "--path", path)
            return "OPENFORWRITE" not in self.run("fsck", path, "-openforwrite")
        except AssertionError:
            return False

    def space_is_back(self):
        try:
            self.cluster.until("the space is back", lambda: self.stored() == self.base, HEAL_SECONDS)
        except AssertionError:
            print(f"        {self.stored()} bytes instead of {self.base}\n{self.run('ec', 'status')}")
            self.base = self.stored()
            raise


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cairn", required=True, type=os.path.abspath)
    p.add_argument("--work", default=f"{pathlib.Path(__file__).resolve().parent}/target")
    p.add_argument("--steps", default=".", help="those with this in their names (a regular expression)")
    p.add_argument("--sides", default=",".join(SIDES))
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    p.add_argument("--few", action="store_true", help="some steps, each with one side")
    args = p.parse_args()
    print(f"seed {args.seed}", flush=True)
    matrix, checks = Matrix(args.cairn, f"{os.path.abspath(args.work)}/{args.seed}", args.seed), Checks()
    try:
        matrix.begin()
        sides = args.sides.split(",")
        for number, step in enumerate(step for step in matrix.steps() if re.search(args.steps, step)):
            if args.few and step not in FEW:
                continue
            for side in [sides[number % len(sides)]] if args.few else sides:
                begin = time.monotonic()
                checks.check(f"killed at {step}: {side}", lambda: matrix.cell(step, side))
                print(f"        {time.monotonic() - begin:.0f} s", flush=True)
    finally:
        matrix.cluster.stop()
    print(f"{checks.failed} failed")
    if not checks.failed:
        subprocess.run(["rm", "-rf", matrix.folder], check=True)
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
