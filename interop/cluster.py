"""A NameNode and DataNodes, each a process."""

import os
import re
import shutil
import socket
import subprocess
import time
import traceback
import urllib.request


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Checks:
    """What is looked at, one after the other: a failure is told, and the next one is looked at."""

    def __init__(self):
        self.failed = 0

    def check(self, what, holds):
        try:
            holds()
            print(f"ok      {what}", flush=True)
        except Exception:
            self.failed += 1
            print(f"FAILED  {what}", flush=True)
            traceback.print_exc()


class Processes:
    """Servers by their names, each with a log in a folder that is empty in the beginning."""

    def __init__(self, folder):
        self.folder, self.processes = folder, {}
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)

    def launch(self, name, command):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self):
        for name in list(self.processes):
            self.kill(name)


class Cluster(Processes):
    def __init__(self, cairn, folder, datanodes, keys={}, datanode_keys={}):
        super().__init__(folder)
        self.datanode_keys = datanode_keys
        self.cairn = cairn
        self.rpc, self.http = free_port(), free_port()
        self.common = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{self.rpc}",
            "dfs.heartbeat.interval": "1",
        }
        self.namenode_keys = {
            "dfs.namenode.rpc-address": f"127.0.0.1:{self.rpc}",
            "dfs.namenode.http-address": f"127.0.0.1:{self.http}",
            # A silent DataNode is dead after 12 s.
            "dfs.namenode.heartbeat.recheck-interval": "1000",
            "dfs.namenode.redundancy.interval.seconds": "1",
            "dfs.namenode.safemode.extension": "0",
            **keys,
        }
        self.start_namenode()
        self.until("the NameNode serves", self.serves)
        for number in range(datanodes):
            self.start_datanode(number)

    def start_namenode(self):
        self.start("namenode", ["--data", f"{self.folder}/name"], self.namenode_keys)

    def serves(self):
        return self.page("/isActive")

    def start_datanode(self, number):
        self.start(f"datanode-{number}", ["--data", f"{self.folder}/data-{number}"], {
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0",
            **self.datanode_keys,
        })

    def start(self, name, options, keys):
        role = name.split("-")[0]
        keys = [part for key in {**self.common, **keys}.items() for part in ("-D", "=".join(key))]
        self.launch(name, [self.cairn, role, *keys, *options])

    def run(self, *words):
        command = [self.cairn, words[0], "--fs", self.common["fs.defaultFS"], *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def address(self, path):
        return f"http://127.0.0.1:{self.http}{path}"

    def page(self, path):
        with urllib.request.urlopen(self.address(path), timeout=10) as answer:
            return answer.read().decode()

    def until_registered(self, datanodes):
        live = f'"NumLiveDataNodes" *: *{datanodes}'
        beans = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        self.until(f"{datanodes} DataNodes have registered", lambda: re.search(live, self.page(beans)))

    def until(self, what, is_so, seconds=90):
        end = time.monotonic() + seconds
        while True:
            try:
                if found := is_so():
                    return found
            except OSError:
                pass
            if time.monotonic() > end:
                raise AssertionError(f"it is not so after {seconds} s: {what}")
            time.sleep(0.2)
