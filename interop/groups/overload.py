#!/usr/bin/env python3
"""Counts what DataNodes read for readers of Hadoop that know only where blocks were before they came into contiguous groups,
ask a second DataNode after half a second, and find one that has a tenth of its speed. Needs what interop/run needs.

  interop/groups/overload.py --cairn target/checked/cairn [--seconds 30] [--threads 16] [--length BYTES]

Files are written as copies and opened; then they become groups and their copies go, so that two of three locations that
readers have are wrong. Bytes read from replicas are to be 1.3 times those that readers get, at most: with all DataNodes well,
with one of them standing still for nine tenths of the time, and with one gone, whose blocks are decoded.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cluster import Checks, free_port  # noqa: E402
from files import bytes_of  # noqa: E402
from groups import DATANODES, HEAL_SECONDS, MIB, POLICY, STEP_SECONDS, Told  # noqa: E402
from scene import java  # noqa: E402

FILES, BLOCKS = 6, 6
BLOCK = 4 * MIB
# Bytes read from replicas for each that a reader gets.
MOST = 1.3
# A DataNode that is slow runs for a tenth of each turn: long enough for a second one to be asked.
TURN_SECONDS = 2.0
SHARE = 0.1


class Watched(Told):
    """Each DataNode has a page of its own."""

    def start_datanode(self, number):
        self.pages = getattr(self, "pages", {})
        self.pages[number] = free_port()
        self.datanode_keys = {"dfs.datanode.http.address": f"127.0.0.1:{self.pages[number]}"}
        super().start_datanode(number)

    def figures(self, number):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.pages[number]}/prom", timeout=10) as answer:
            text = answer.read().decode()
        found = {"sent": 0, "decoded": 0}
        for name, value in re.findall(r"^cairn_datanode_(\w+)(?:\{[^}]*\})? ([0-9.e+]+)$", text, re.MULTILINE):
            if name == "sent_bytes_total":
                found["sent"] += float(value)
            elif name == "decoded_bytes_total":
                found["decoded"] += float(value)
        return found


class Overload:
    def __init__(self, cairn, folder, args):
        self.folder, self.args = folder, args
        self.cluster = Watched(cairn, folder, DATANODES, {
            "cairn.ec.contiguous.quiet-time": "0",
            "cairn.ec.contiguous.short-quiet-time": "0",
            # What is gone stays gone: its blocks are decoded, not rebuilt meanwhile.
            "dfs.namenode.heartbeat.recheck-interval": "600000",
        })
        self.readers = None
        self.gone = set()

    def status(self):
        return json.loads(self.cluster.run("ec", "status", "--json"))

    def opened(self):
        run = self.cluster.run
        self.cluster.until_registered(DATANODES)
        run("ec", "-enablePolicy", "-policy", POLICY)
        run("fs", "mkdir", "/all")
        run("ec", "-setPolicy", "-path", "/all", "-policy", POLICY)
        run("ec", "pause", "form")
        local = f"{self.folder}/local"
        os.makedirs(local)
        for number in range(FILES):
            with open(f"{local}/{number}", "wb") as file:
                file.write(bytes_of(BLOCKS * BLOCK, number))
            run("fs", "-D", f"dfs.blocksize={BLOCK}", "put", f"{local}/{number}", f"/all/{number}")
        words = ["HedgedReaders", self.cluster.common["fs.defaultFS"], "/all", local, str(self.args.threads), str(self.args.length)]
        with open(f"{self.folder}/readers.log", "ab") as log:
            self.readers = subprocess.Popen(java(self.folder, *words), text=True, bufsize=1,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert self.readers.stdout.readline() == "open\n"

    def is_settled(self):
        status = self.status()
        busy = ("attempts", "groups_with_surplus", "dissolving_groups")
        return status["groups"] > 0 and status["waiting_blocks"] <= 2 and all(status[key] == 0 for key in busy)

    def grouped(self):
        self.cluster.run("ec", "resume", "form")
        self.cluster.until("all is in groups, with no copies left", self.is_settled, STEP_SECONDS)

    def sources(self):
        figures = [self.cluster.figures(number) for number in range(DATANODES) if number not in self.gone]
        return {name: sum(figure[name] for figure in figures) for name in figures[0]}

    def read(self, how):
        """Bytes from replicas for each that readers have had."""
        before = self.sources()
        self.readers.stdin.write(f"{self.args.seconds}\n")
        told = json.loads(self.readers.stdout.readline())
        # Answers that nobody waits for any more are read to their end.
        time.sleep(2)
        found = {name: value - before[name] for name, value in self.sources().items()}
        told.update({name: int(value) for name, value in found.items()})
        told["ratio"] = round(found["sent"] / max(1, told["bytes"]), 2)
        print(f"        {how}: {json.dumps(told)}", flush=True)
        assert told["failed"] == 0 and told["wrong"] == 0 and told["reads"] > 0, told
        return told

    def well(self):
        told = self.read("all DataNodes are well")
        assert told["ratio"] <= MOST, told

    def slow(self):
        process, over = self.cluster.processes["datanode-0"], threading.Event()

        def turns():
            while not over.is_set():
                process.send_signal(signal.SIGSTOP)
                over.wait(TURN_SECONDS * (1 - SHARE))
                process.send_signal(signal.SIGCONT)
                over.wait(TURN_SECONDS * SHARE)

        thread = threading.Thread(target=turns)
        thread.start()
        try:
            told = self.read("one has a tenth of its speed")
        finally:
            over.set()
            thread.join()
        assert told["hedged"] > 0, "nothing was slow"
        assert told["ratio"] <= MOST, told

    def decoded(self):
        """One is gone: what it had is decoded, and costs as many reads as that takes; all else costs what it did."""
        self.cluster.kill("datanode-1")
        self.gone.add(1)
        told = self.read("one is gone")
        units = 3
        rest = told["bytes"] - told["decoded"]
        assert told["decoded"] > 0, "nothing was decoded"
        most = MOST * (rest + units * told["decoded"])
        assert told["sent"] <= most, (told, most)

    def stop(self):
        if self.readers:
            self.readers.kill()
            self.readers.wait()
        self.cluster.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cairn", required=True, type=os.path.abspath)
    p.add_argument("--work", default=f"{pathlib.Path(__file__).resolve().parent}/target")
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("--threads", type=int, default=16)
    p.add_argument("--length", type=int, default=256 << 10)
    args = p.parse_args()
    # Fetches and compiles Hadoop's classes and ours.
    subprocess.run([f"{pathlib.Path(__file__).resolve().parent.parent}/run", "-m", "cairn.interop.Scene", "compile"], check=True)
    checks = Checks()
    one = Overload(args.cairn, f"{os.path.abspath(args.work)}/overload", args)
    try:
        for what in ["opened", "grouped", "well", "slow", "decoded"]:
            checks.check(what, getattr(one, what))
    finally:
        one.stop()
    if checks.failed == 0:
        shutil.rmtree(one.folder)
    print(f"{checks.failed} failed")
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
