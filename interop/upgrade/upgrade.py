"""A rolling upgrade while Hadoop's client writes.

A cluster of the former program is filled, and Hadoop's command prepares the upgrade while a client writes files. Then the
NameNode and each DataNode are replaced, one after the other, and every kind of operation is done. To the end: nothing that was
acknowledged at any time is lost, and the former program says in one sentence that it does not start any more. Back again: the
client sees what it saw at the moment of the preparation, with all bytes of what was closed then, but for what was changed in
place since; and it goes on. A client that knows one NameNode has calls fail while that one is replaced, as on Hadoop; how many
is told.
"""

import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), f"{os.path.dirname(HERE)}/backups"]
import three  # noqa: E402
from backups import DATANODES, Source, Writer, facts_but, is_there, on_disks  # noqa: E402
from scene import CLASSES, differences, scene, told, until  # noqa: E402


class Upgraded(Source):
    """A cluster whose program is replaced; commands are those of the new one."""

    def __init__(self, former, cairn, folder):
        self.program, self.new = former, cairn
        super().__init__(former, folder, {"dfs.namenode.startup.delay.block.deletion.sec": "0"})

    def serves(self):
        # Earlier programs have no page that says it.
        return self.page("/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")

    def stop_server(self, name):
        process = self.processes.pop(name)
        process.terminate()
        process.wait()

    def replace_name_node(self, program, *words):
        self.stop_server("namenode")
        self.start_name_node_of(program, *words)

    def start_name_node_of(self, program, *words):
        self.cairn = program
        self.start("namenode", ["--data", self.name, *words], self.namenode_keys)
        self.until("the NameNode serves", self.serves)
        self.until_registered(DATANODES)

    def replace_data_nodes(self, program):
        self.cairn = program
        for number in range(DATANODES):
            self.stop_server(f"datanode-{number}")
            self.start_datanode(number)
            self.until_reports(number)

    def until_reports(self, number):
        """Until a DataNode that was replaced serves again: then the next one may go."""
        beans = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem"
        self.until_registered(DATANODES)
        until(lambda: re.search(r'"StaleDataNodes"\W+0\b', self.page(beans)))

    def dfsadmin(self, *words):
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", CLASSES, "org.apache.hadoop.hdfs.tools.DFSAdmin"]
        done = subprocess.run([*command, "-fs", self.fs, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def written(self):
        """How many files the client has written by now."""
        return len(told(self.new, self.fs, "fs", "ls", "/written").splitlines())

    def until_written(self):
        """Until the client has written some more."""
        before = self.written()
        until(lambda: self.written() > before + 5)


def begun(former, cairn, folder):
    """A cluster with an upgrade that is prepared, a client that writes, and what there was at that moment."""
    cluster = Upgraded(former, cairn, folder)
    try:
        cluster.until_registered(DATANODES)
        scene(folder, "fill", cluster.fs, "more")
        writer = Writer(cluster, "/written")
        cluster.until_written()
        cluster.dfsadmin("-safemode", "enter")
        before = scene(folder, "facts", cluster.fs)
        assert "Proceed with rolling upgrade" in cluster.dfsadmin("-rollingUpgrade", "prepare")
        cluster.until_written()
        cluster.replace_name_node(cairn)
        cluster.until_written()
        cluster.replace_data_nodes(cairn)
        cluster.until_written()
        assert "Proceed with rolling upgrade" in cluster.dfsadmin("-rollingUpgrade", "query")
        return cluster, writer, before
    except BaseException:
        cluster.stop()
        raise


def end_of(writer):
    """Stops the client. Returns how many files it has written and how many calls have failed."""
    answer = writer.answer()
    assert answer["acknowledged"] and not answer["lost"], answer
    return f"{answer['acknowledged']} files written, {answer['errors']} calls failed, none lost"


def is_written(line):
    return bool(re.match(r"path /(written\S*)? ", line)) or line.startswith("path /written/")


def finalized(former, cairn, folder):
    cluster, writer, before = begun(former, cairn, folder)
    try:
        differing = differences(facts_but(before, is_written), facts_but(scene(folder, "facts", cluster.fs), is_written))
        assert not differing, "\n".join(differing)
        scene(folder, "change", cluster.fs)
        cluster.dfsadmin("-rollingUpgrade", "finalize")
        cluster.until_written()
        cluster.replace_name_node(cairn)
        cluster.until_written()
        print(f"finalized: {end_of(writer)}", flush=True)
        cluster.stop_server("namenode")
        if former != cairn:
            command = [former, "namenode", "--data", cluster.name]
            for words in [["--rollback"], []]:
                refused = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60)
                assert refused.returncode != 0, "the former program starts on what is finalized"
            print(f"finalized: the former program does not start any more: {refused.stderr.strip().splitlines()[-1]}")
    finally:
        cluster.stop()


def back(former, cairn, folder):
    cluster, writer, before = begun(former, cairn, folder)
    try:
        scene(folder, "change", cluster.fs)
        told(cairn, cluster.fs, "fs", "rm", "-r", "/plain", "/striped/wide")
        cluster.until_written()
        print(f"back: {end_of(writer)} before", flush=True)
        replicas = on_disks(cluster.disks)
        for name in list(cluster.processes):
            cluster.stop_server(name)
        cluster.cairn = former
        for number in range(DATANODES):
            cluster.start_datanode(number)
        cluster.start_name_node_of(former, "--rollback")
        compare(cluster, folder, before, replicas)
        told(cairn, cluster.fs, "admin", "safemode", "leave")
        again = Writer(cluster, "/again")
        time.sleep(5)
        print(f"back: {end_of(again)} after", flush=True)
        compare(cluster, folder, before, replicas)
    finally:
        cluster.stop()


def compare(cluster, folder, before, replicas):
    """The client sees what it saw, but for bytes of what was changed in place since and of files that were open."""
    of_files = [line for line in before.splitlines() if " md5=" in line]
    gone = {line.split(" ")[1] for line in of_files if not is_there(line, replicas)}
    open_files = {line.split(" ")[1] for line in before.splitlines() if line.endswith(" open")}
    assert len(gone) < len(of_files) / 4, gone

    def plain(text):
        lines = []
        for line in text.splitlines():
            parts = line.split(" ")
            # The root changes with what is written anew.
            if parts[0] == "path" and (parts[1] == "/" or parts[1] in open_files or parts[1].startswith("/again")):
                continue
            lines.append(re.sub(r" md5=\S+", "", line) if len(parts) > 1 and parts[1] in gone else line)
        return "\n".join(lines)

    differing = []

    def is_same():
        nonlocal differing
        differing = differences(plain(before), plain(scene(folder, "facts", cluster.fs)))
        return not differing

    try:
        cluster.until("the client sees what it saw", is_same, 40)
    except AssertionError:
        raise AssertionError("\n".join(differing[:40])) from None
    print(f"back: {len(of_files) - len(gone)} files as they were, {len(gone)} changed in place since", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--cairn", required=True, type=os.path.abspath)
    words.add_argument("--former", type=os.path.abspath)
    words.add_argument("--former-of-three", type=os.path.abspath, help="a former program that knows quorums")
    words.add_argument("--only", choices=["finalized", "back", "three-finalized", "three-back"])
    options = words.parse_args()
    runs = {"finalized": (finalized, options.former), "back": (back, options.former),
            "three-finalized": (three.finalized, options.former_of_three), "three-back": (three.back, options.former_of_three)}
    for name, (run, former) in runs.items():
        if options.only in (None, name):
            run(former or options.cairn, options.cairn, f"{HERE}/target/{name}")


if __name__ == "__main__":
    main()
