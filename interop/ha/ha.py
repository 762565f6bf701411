"""Kills the leader of three NameNodes again and again while clients write, and looks for all that was acknowledged."""

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, ".."))
import pages  # noqa: E402
from cluster import Checks, Processes, free_port  # noqa: E402

IDS = ["nn1", "nn2", "nn3"]
DATANODES = 4
PROVIDERS = {
    "configured": "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
    "hedging": "org.apache.hadoop.hdfs.server.namenode.ha.RequestHedgingProxyProvider",
}
OBSERVER = "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider"
ALL_PROVIDERS = {**PROVIDERS, "observer": OBSERVER}
CLASSES = ":".join(os.path.join(here, "..", "hadoop", "target", p) for p in ["classes", "lib/*"])
CASES = os.path.join(here, "..", "hadoop", "cases", "contract", "replicated.txt")
GO = os.path.join(here, "..", "old", "target", "hdfs")


def until(what, is_so, seconds=60):
    end = time.monotonic() + seconds
    while not (found := is_so()):
        if time.monotonic() > end:
            raise AssertionError(f"it is not so after {seconds} s: {what}")
        time.sleep(0.02)
    return found


class Three(Processes):
    # Keys beside those that all have.
    more = {}

    def host(self, name):
        """The address of a member."""
        return "127.0.0.1"

    def under(self, name):
        """What a member's program is started by."""
        return []

    def __init__(self, cairn, folder, election_timeout, names=IDS):
        super().__init__(folder)
        self.names = names
        self.cairn = cairn
        os.makedirs(f"{folder}/conf")
        with open(f"{folder}/key", "w") as key:
            key.write("what all members of this quorum have")
        self.rpc = {name: f"{self.host(name)}:{free_port()}" for name in self.names}
        self.http = {name: f"{self.host(name)}:{free_port()}" for name in self.names}
        self.conf = f"{folder}/conf"
        self.classes = f"{self.conf}:{CLASSES}"
        keys = {
            "fs.defaultFS": "hdfs://ns",
            "dfs.nameservices": "ns",
            "dfs.ha.namenodes.ns": ",".join(self.names),
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.client.failover.proxy.provider.ns": PROVIDERS["configured"],
            # Who reads from followers asks the leader how far it is before each read.
            "dfs.client.failover.observer.auto-msync-period.ns": "0",
            "cairn.quorum.key-file": f"{folder}/key",
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.fs-limits.min-block-size": "512",
        }
        keys.update(self.more)
        if election_timeout:
            keys["cairn.quorum.election-timeout"] = election_timeout
        for name in self.names:
            keys[f"dfs.namenode.rpc-address.ns.{name}"] = self.rpc[name]
            keys[f"dfs.namenode.http-address.ns.{name}"] = self.http[name]
            keys[f"cairn.quorum.address.ns.{name}"] = f"{self.host(name)}:{free_port()}"
        text = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in keys.items())
        for file in ["core-site.xml", "hdfs-site.xml"]:
            with open(f"{self.conf}/{file}", "w") as out:
                out.write(f"<configuration>{text}</configuration>")
        self.run(*self.member("nn1"), "--found-quorum")
        for name in self.names:
            self.start(name)

    def member(self, name):
        keys = {
            "dfs.ha.namenode.id": name,
            "dfs.namenode.name.dir": f"{self.folder}/{name}",
            "dfs.namenode.heartbeat.recheck-interval": "1000",
            "dfs.namenode.redundancy.interval.seconds": "1",
        }
        words = [part for key, value in keys.items() for part in ("-D", f"{key}={value}")]
        return [*words, "--log", "info", "namenode"]

    def run(self, *words):
        done = subprocess.run([self.cairn, "--conf", self.conf, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self, name):
        self.launch(name, [*self.under(name), self.cairn, "--conf", self.conf, *self.member(name)])

    def start_datanode(self, number):
        ports = ["dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"]
        words = [part for key in ports for part in ("-D", f"{key}=127.0.0.1:0")]
        data = ["datanode", "--data", f"{self.folder}/data-{number}"]
        self.launch(f"datanode-{number}", [self.cairn, "--conf", self.conf, *words, *data])

    def start_hadoop_datanode(self):
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", CLASSES]
        command += ["-Dlog4j.configuration=log4j-stderr.properties", "cairn.interop.Daemons", "datanode"]
        command += ["--conf", self.conf, "--data", f"{self.folder}/data-hadoop"]
        for key in ["dfs.datanode.address", "dfs.datanode.ipc.address", "dfs.datanode.http.address"]:
            command += ["-D", f"{key}=127.0.0.1:{free_port()}"]
        self.launch("datanode-hadoop", command)

    def log(self, name):
        with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as log:
            return re.sub("\x1b\\[[0-9;]*m", "", log.read())

    def leads(self, after=0):
        """Who has said that it leads in the greatest term behind `after`, if it lives, and that term."""
        terms = {}
        for name in self.names:
            if name in self.processes:
                told = re.findall(r"this NameNode (leads|does not lead any more).*?term=(\d+)", self.log(name))
                if told and told[-1][0] == "leads" and int(told[-1][1]) > after:
                    terms[name] = int(told[-1][1])
        return max(((term, name) for name, term in terms.items()), default=None)

    def running(self):
        return [name for name in self.names if name in self.processes]

    def leader(self):
        found = self.leads()
        return found and found[1]

    def until_all_vote(self):
        until("somebody leads", self.leader)
        until("all vote", lambda: self.voters() >= 2)

    def start_datanodes(self, count):
        for number in range(count):
            self.start_datanode(number)
        until("all DataNodes have registered", lambda: self.live() >= count, 90)

    def kill_leaders(self, times, pause, before=lambda: None, without=lambda step: None):
        """Kills whoever leads, again and again, and starts it anew. `before` is called before each, and `without` while it is
        gone. Returns how long it took each time until another one led."""
        waits = []
        for step in range(times):
            time.sleep(pause)
            before()
            term, leader = until("somebody leads", self.leads)
            began = time.monotonic()
            self.kill(leader)
            until("another one leads", lambda: self.leads(after=term), 90)
            waits.append(time.monotonic() - began)
            without(step)
            self.start(leader)
        return waits

    def until_healthy(self):
        until("it is healthy", lambda: "HEALTHY" in self.run("fsck", "/"))

    def live(self):
        return len(json.loads(self.run("--json", "report", "--live"))["live"])

    def ready(self):
        """Whether each says that it serves well, or would if it led."""
        told = map(json.loads, self.run("--json", "admin", "members").splitlines())
        return {member["name"]: member["ready"] for member in told}

    def reads(self):
        """Reads that each has answered while another one led, since it was started."""
        told = map(json.loads, self.run("--json", "admin", "members").splitlines())
        return {member["name"]: member["reads"] or 0 for member in told}

    def lag(self, name):
        """Entries that a member lacks; none if it is not known."""
        told = map(json.loads, self.run("--json", "admin", "members").splitlines())
        return next((member["lag"] for member in told if member["name"] == name), None)

    def voters(self):
        return len(re.findall("Promote", "".join(self.log(name) for name in self.names)))

    def haadmin(self, *words):
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", self.classes]
        command += ["org.apache.hadoop.hdfs.tools.DFSHAAdmin", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class WithTokens(Three):
    """The same with block tokens. Whoever leads hands a file's out, and whoever follows, too."""

    more = {"dfs.block.access.token.enable": "true"}


class Client:
    """Hadoop's client, writing files one after the other, and reading the last of them again and again."""

    def __init__(self, folder, conf, name):
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", CLASSES]
        command += ["-Dlog4j.configuration=log4j-stderr.properties", "cairn.interop.FailoverClient"]
        command += [conf, ALL_PROVIDERS[name], f"/{name}"]
        self.name = name
        self.errors = open(f"{folder}/client-{name}.log", "w")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        if self.process.stdout.readline().strip() != "writes":
            raise AssertionError(f"the client {name} does not begin")

    def gaps(self):
        """The longest time in milliseconds between two successful writes, and two reads, since the last question."""
        self.process.stdin.write("gaps\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        told, _ = self.process.communicate("stop\n", timeout=300)
        return json.loads(told)


def one_address(three, step, at=None):
    """A client that knows one address writes and reads by a member that follows."""
    follower = at or next(name for name in IDS if name in three.processes and name != three.leader())
    namenode = three.rpc[follower]
    env = {**os.environ, "HADOOP_NAMENODE": namenode, "HADOOP_USER_NAME": three.user}
    source = f"{three.folder}/source"
    with open(source, "wb") as out:
        out.write(os.urandom(100_000))
    path = f"/one-address-{step}"
    for words in [["put", source, path], ["cat", path]]:
        done = subprocess.run([GO, *words], env=env, capture_output=True)
        if done.returncode != 0:
            raise AssertionError(f"{words} at {follower}: {done.stderr.decode()}")
    with open(source, "rb") as file:
        if hashlib.sha256(file.read()).digest() != hashlib.sha256(done.stdout).digest():
            raise AssertionError(f"{path} is not what was written")


def read_at_followers(three, folder="/seen-at-followers"):
    """Two of Hadoop's clients read where others are followed: each sees what it has made, and after msync what the other has,
    and a file is opened and read there."""
    before, leader = three.reads(), three.leader()
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", CLASSES]
    command += ["-Dlog4j.configuration=log4j-stderr.properties", "cairn.interop.ObserverReads"]
    command += [three.conf, OBSERVER, folder, "300"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{done.stdout}{done.stderr}")
    told, after = json.loads(done.stdout), three.reads()
    reads = {name: after[name] - before[name] for name in IDS}
    print(f"        {json.dumps(told)}; {leader} led, answered by followers: {reads}", flush=True)
    # Each directory is looked for three times, and twice that is what must be there. All but the first openings of the file
    # are a member's that follows: its DataNodes may not have told that one yet.
    if told["missed"] or sum(reads.values()) < 2 * told["made"] + told["opened"] * 9 // 10:
        raise AssertionError(f"{told} {reads}")


def tell(waits):
    print(f"        until another one led: {', '.join(f'{wait:.1f}' for wait in waits)} s", flush=True)


def kill_again_and_again(three, kills):
    clients = [Client(three.folder, three.conf, name) for name in ALL_PROVIDERS]
    waits = three.kill_leaders(kills, 2, without=lambda step: one_address(three, step))
    time.sleep(2)
    tell(waits)
    for client in clients:
        told = client.end()
        print(f"        {client.name}: {json.dumps(told)}", flush=True)
        if told["lost"] or told["errors"] or told["acknowledged"] < kills:
            raise AssertionError(f"{client.name}: {told}")


def frozen(three):
    """Who leads stands still: others go on, and it says nothing of its own when it goes on too."""
    term, leader = three.leads()
    three.processes[leader].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    three.run("fs", "mkdir", "/frozen-directory")
    print(f"        Cairn's client made a directory in {time.monotonic() - began:.1f} s", flush=True)
    # One of those that live, whichever leads by now.
    one_address(three, "frozen", at=next(name for name in IDS if name != leader))
    print(f"        a file was written and read in {time.monotonic() - began:.1f} s", flush=True)
    if three.leads(after=term) is None:
        raise AssertionError("nobody else leads")
    three.processes[leader].send_signal(signal.SIGCONT)
    until("it knows that it does not lead", lambda: f"does not lead any more term={term}" in three.log(leader))
    one_address(three, "thawed", at=leader)


def knows_no_replicas(three):
    """Whoever leads has heard of no replica when its lead begins: it says that it is not ready, until DataNodes tell it."""
    term, leader = until("somebody leads", three.leads)
    datanodes = [process for name, process in three.processes.items() if name.startswith("datanode")]
    for process in datanodes:
        process.send_signal(signal.SIGSTOP)
    for name in [name for name in IDS if name != leader]:
        three.kill(name)
        three.start(name)
        until(f"{name} follows", lambda: three.lag(name) == 0)
    three.kill(leader)
    _, next_leader = until("another one leads", lambda: three.leads(after=term), 90)
    until("it says that it is not ready", lambda: three.ready()[next_leader] is False)
    for process in datanodes:
        process.send_signal(signal.SIGCONT)
    began = time.monotonic()
    until("it is ready", lambda: three.ready()[next_leader])
    print(f"        it was ready {time.monotonic() - began:.1f} s after DataNodes went on", flush=True)
    three.start(leader)
    until(f"{leader} follows", lambda: three.lag(leader) == 0)


def contracts(three, kills):
    """Hadoop's contract tests end as on Hadoop while the leader is killed again and again."""
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", CLASSES, f"-Dinterop.log={three.folder}/contracts.log"]
    command += ["cairn.interop.ContractsAt", three.conf, CASES]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    waits = []
    while run.poll() is None and len(waits) < kills:
        waits += three.kill_leaders(1, 4)
    told = json.loads(run.communicate(timeout=900)[0].splitlines()[-1])
    tell(waits)
    if told["worse"] or told["ran"] < 300 or len(waits) < kills:
        raise AssertionError(f"{told}, {len(waits)} kills")


def read_with_tokens(three):
    """Files are read by tokens of members that follow, also after the lead has moved."""
    read_at_followers(three, "/by-tokens")
    tell(three.kill_leaders(1, 0))
    until("all have what there is", lambda: all(three.lag(name) == 0 for name in IDS))
    until("all are ready", lambda: all(three.ready().values()))
    read_at_followers(three, "/by-tokens-of-others")


def administer(three):
    leader = until("somebody leads", three.leader)
    other = next(name for name in IDS if name != leader)
    for name in IDS:
        code, told = three.haadmin("-getServiceState", name)
        wanted = "active" if name == leader else "standby"
        if code != 0 or wanted not in told:
            raise AssertionError(f"{name} is {wanted}: {told}")
        code, told = three.haadmin("-checkHealth", name)
        if code != 0:
            raise AssertionError(f"{name}: {told}")
    code, told = three.haadmin("-failover", leader, other)
    if code != 0:
        raise AssertionError(told)
    if three.leader() != other:
        raise AssertionError(f"{three.leader()} leads, and not {other}: {told}")
    code, told = three.haadmin("-getAllServiceState")
    if code != 0 or told.count("active") != 1 or told.count("standby") != 2:
        raise AssertionError(told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--election-timeout", help="cairn.quorum.election-timeout; its default if none is given")
    parser.add_argument("--only", choices=["tokens", "contracts"],
                        help="only what goes with block tokens, or only Hadoop's contract tests")
    args = parser.parse_args()
    checks = Checks()
    if args.only != "contracts":
        with_tokens(args, checks)
    if args.only != "tokens":
        without_tokens(args, checks)
    sys.exit(1 if checks.failed else 0)


def with_tokens(args, checks):
    three = WithTokens(os.path.abspath(args.cairn), os.path.join(here, "target", "with-tokens"), args.election_timeout)
    try:
        three.until_all_vote()
        three.start_datanodes(2)
        three.start_hadoop_datanode()
        until("all DataNodes have registered", lambda: three.live() == 3, 90)
        checks.check("Hadoop's client reads by block tokens of members that follow", lambda: read_with_tokens(three))
    finally:
        three.stop()


def without_tokens(args, checks):
    three = Three(os.path.abspath(args.cairn), os.path.join(here, "target", "cluster"), args.election_timeout)
    three.user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    try:
        three.until_all_vote()
        three.start_datanodes(DATANODES)
        three.start_hadoop_datanode()
        until("all DataNodes have registered", lambda: three.live() == DATANODES + 1, 90)
        checks.check(f"Hadoop's contract tests pass while the leader is killed {args.kills} times",
                     lambda: contracts(three, args.kills))
        if args.only:
            return
        checks.check("a client with one address is served by a member that follows", lambda: one_address(three, "first"))
        checks.check("Hadoop's clients read at members that follow", lambda: read_at_followers(three))
        checks.check(f"Hadoop's client loses nothing while the leader is killed {args.kills} times",
                     lambda: kill_again_and_again(three, args.kills))
        checks.check("a leader that stands still is done without", lambda: frozen(three))
        checks.check("a leader that knows of no replicas says so until DataNodes have told it", lambda: knows_no_replicas(three))
        checks.check("any member serves WebHDFS and pages, and tells of itself", lambda: pages.all_of_it(three, until))
        checks.check("hdfs haadmin tells states and fails over", lambda: administer(three))
    finally:
        three.stop()


if __name__ == "__main__":
    main()
