#!/usr/bin/env python3
"""Restores a NameNode from before its contiguous groups, or from before its containers of small blocks, and reads every byte with
as many DataNodes gone as a group can lose.

  interop/groups/restored.py --cairn target/checked/cairn [--rounds N] [--seed N] [--only groups|packed]

In each round files are written as copies and backed up. Then they become groups, and their copies go; some files are removed
and others written, which are members as well. The NameNode is restored from the backup, and starts with two DataNodes gone: it
must take the groups over from what parities say, and give every byte back. `cairn admin restored` tells of it. Then the same
with small files that are packed, whose places the indexes of containers tell, of lost ones too. Meanwhile `fsck -delete` is
refused.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cluster import Checks  # noqa: E402
from files import bytes_of, small_files  # noqa: E402
from groups import DATANODES, HEAL_SECONDS, MIB, POLICY, STEP_SECONDS, Kept, Told  # noqa: E402

# What a group of the policy can lose.
LOST = 2


class Round:
    """Files of blocks that become members of groups."""

    keys = {}
    adopted = "adopted_groups"

    def __init__(self, cairn, folder, seed):
        self.cairn, self.folder, self.dice, self.kept = cairn, folder, random.Random(seed), Kept()
        self.cluster = Told(cairn, folder, DATANODES, {
            "cairn.ec.contiguous.quiet-time": "0",
            "cairn.ec.contiguous.short-quiet-time": "0",
            **self.keys,
        })

    def run(self, *words):
        return self.cluster.run(*words)

    def status(self):
        return json.loads(self.run("ec", "status", "--json"))

    def restored(self):
        return json.loads(self.run("admin", "restored", "--json"))["restored"]

    def put(self, path, data):
        local = f"{self.folder}/local"
        with open(local, "wb") as file:
            file.write(data)
        self.run("fs", "-D", f"dfs.blocksize={MIB}", "put", local, path)
        self.kept.put(path, data)

    def is_settled(self):
        status = self.status()
        busy = ("attempts", "groups_with_surplus", "dissolving_groups")
        # Two blocks alone make no group that pays.
        is_grouped = status["groups"] > 0 and status["waiting_blocks"] <= 2
        return is_grouped and all(status[key] == 0 for key in busy)

    def before(self):
        self.cluster.until_registered(DATANODES)
        self.run("ec", "-enablePolicy", "-policy", POLICY)
        self.run("fs", "mkdir", "/all")
        self.run("ec", "-setPolicy", "-path", "/all", "-policy", POLICY)
        self.run("ec", "pause", "form")
        self.write_known()
        http = f"dfs.namenode.http-address=127.0.0.1:{self.cluster.http}"
        fs = f"fs.defaultFS={self.cluster.common['fs.defaultFS']}"
        done = subprocess.run([self.cairn, "-D", fs, "-D", http, "namenode", "backup", "--to", f"{self.folder}/backups", "--full"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def write_known(self):
        for number in range(4):
            blocks = self.dice.randrange(3, 7)
            self.put(f"/all/file-{number}", bytes_of(blocks * MIB, number))

    def write_later(self):
        for number in range(3):
            path = f"/all/later-{number}"
            self.put(path, bytes_of(MIB, "later", number))
            del self.kept.files[path]

    def behind(self):
        """What the backup does not know."""
        self.write_later()
        self.run("ec", "resume", "form")
        self.cluster.until("all is in groups, with no copies left", self.is_settled, STEP_SECONDS)
        print(f"        {self.status()['groups']} groups", flush=True)

    def restore(self):
        self.cluster.kill("namenode")
        for number in self.dice.sample(range(DATANODES), LOST):
            self.cluster.kill(f"datanode-{number}")
            print(f"        datanode-{number} is gone", flush=True)
        shutil.rmtree(f"{self.folder}/name")
        done = subprocess.run([self.cairn, "namenode", "restore", "--from", f"{self.folder}/backups", "--data", f"{self.folder}/name"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.cluster.start_namenode()
        self.cluster.until("the NameNode serves", self.cluster.serves)

    def is_over(self):
        told = self.restored()
        return told[self.adopted] > 0 and "OFF" in self.run("admin", "safemode", "get")

    def taken_over(self):
        try:
            self.cluster.until("groups are taken over, and safe mode ends", self.is_over, STEP_SECONDS)
        finally:
            print(f"        {self.restored()}", flush=True)

    def refuses_to_delete(self):
        """Files may only seem to be damaged before it is accepted."""
        for option in ("-delete", "-move"):
            done = subprocess.run([self.cairn, "fsck", "--fs", self.cluster.common["fs.defaultFS"], "/", option], capture_output=True, text=True)
            told = done.stdout + done.stderr
            assert done.returncode != 0 and "cairn admin restored" in told, (done.returncode, told[-500:])

    def reads(self):
        local = f"{self.folder}/read"
        shutil.rmtree(local, ignore_errors=True)
        self.run("fs", "get", "/all", local)
        names = sorted(os.listdir(local))
        assert [f"/all/{name}" for name in names] == sorted(self.kept.files), names
        for name in names:
            with open(f"{local}/{name}", "rb") as file:
                self.kept.check(f"/all/{name}", file.read())

    def is_healthy(self):
        try:
            return "is HEALTHY" in self.run("fsck", "/")
        except AssertionError:
            return False

    def whole(self):
        """What was lost is there again, and what belongs to nothing goes when it is accepted."""
        self.cluster.until("all is healthy", self.is_healthy, HEAL_SECONDS)
        self.run("admin", "restored", "--accept")
        # The backup was made while it was paused.
        self.run("ec", "resume", "form")
        self.cluster.until("groups are whole, or formed anew", self.is_settled, HEAL_SECONDS)
        self.reads()


class Packed(Round):
    """Small files that are packed in containers."""

    keys = {
        "cairn.ec.packing.enabled": "true",
        "cairn.ec.packing.container-size": "1m",
        "cairn.ec.packing.patience": "1",
    }
    adopted = "adopted_blocks"

    def put_many(self, prefix, count):
        folder = f"{self.folder}/{prefix}"
        made = small_files(folder, f"{prefix}-", count, self.dice)
        for name, data in made.items():
            self.kept.put(f"/all/{name}", data)
        self.run("fs", "put", *[f"{folder}/{name}" for name in made], "/all")

    def write_known(self):
        self.put_many("file", 120)

    def write_later(self):
        self.put_many("later", 40)
        self.count = len(self.kept.files)
        for path in [path for path in self.kept.files if "later" in path]:
            del self.kept.files[path]

    def is_settled(self):
        status = self.status()
        busy = ("attempts", "groups_with_surplus", "dissolving_groups", "packed_with_copies")
        return status["packed_blocks"] == self.count and all(status[key] == 0 for key in busy)

    def is_over(self):
        return super().is_over() and self.restored()["unread_containers"] == 0

    def whole(self):
        # Those that only the later state knew are not counted any more.
        self.count = len(self.kept.files)
        super().whole()


KINDS = {"groups": Round, "packed": Packed}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cairn", required=True, type=os.path.abspath)
    p.add_argument("--work", default=f"{pathlib.Path(__file__).resolve().parent}/target")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--only", choices=list(KINDS))
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    args = p.parse_args()
    checks = Checks()
    seeds = range(args.seed, args.seed + args.rounds)
    for seed, kind in [(seed, kind) for seed in seeds for kind in KINDS if args.only in (None, kind)]:
        print(f"seed {seed}, {kind}", flush=True)
        one = KINDS[kind](args.cairn, f"{os.path.abspath(args.work)}/restored-{kind}-{seed}", seed)
        failed = checks.failed
        try:
            for what in ["before", "behind", "restore", "refuses_to_delete", "taken_over", "reads", "whole"]:
                checks.check(what.replace("_", " "), getattr(one, what))
                if checks.failed > failed:
                    break
        finally:
            one.cluster.stop()
        if checks.failed == failed:
            shutil.rmtree(one.folder)
    print(f"{checks.failed} failed")
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
