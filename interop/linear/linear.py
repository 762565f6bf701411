"""Kills, stops, cuts off and empties whoever leads while clients call, and has what they have seen judged."""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, ".."), os.path.join(here, "..", "ha")]
from cluster import Checks  # noqa: E402
from ha import ALL_PROVIDERS, CLASSES, IDS, OBSERVER, Three, until  # noqa: E402

CHECK = os.path.join(here, "target", "check")
# Which ways between a leader and others are closed: to them, from them.
PARTED = {"part": (True, True), "mute": (True, False), "deaf": (False, True)}


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Network:
    """A network namespace for each member, on one bridge; the clients are where the bridge is."""

    def __init__(self):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        os.makedirs("/run/netns")
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("addr", "add", "10.77.0.1/24", "dev", "bridge")
        ip("link", "set", "bridge", "up")
        for name in IDS:
            ip("netns", "add", name)
            ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"to-{name}", "master", "bridge", "up")
            for words in [["addr", "add", f"{self.host(name)}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]]:
                ip("-n", name, *words)

    @staticmethod
    def host(name):
        return f"10.77.0.{11 + IDS.index(name)}"

    def cut(self, name, is_cut):
        """From everybody."""
        ip("link", "set", f"to-{name}", "down" if is_cut else "up")

    def part(self, name, others, ways, is_parted):
        """From other members, both ways or one: clients and DataNodes reach it as before."""
        to_others, from_others = ways
        closed = [(name, other) for other in others if to_others] + [(other, name) for other in others if from_others]
        for sender, receiver in closed:
            ip("-n", sender, "route", "add" if is_parted else "del", "blackhole", f"{self.host(receiver)}/32")


class Members(Three):
    def __init__(self, cairn, folder, network):
        self.network = network
        # The numbers of members whose disks were taken away.
        self.gone = set()
        super().__init__(cairn, folder, None)

    def host(self, name):
        return self.network.host(name) if self.network else super().host(name)

    def under(self, name):
        return ["ip", "netns", "exec", name] if self.network else []

    def ids(self):
        """The numbers of the members that vote, by name, if all are there and nobody is to join or to go."""
        try:
            told = list(map(json.loads, self.run("--json", "admin", "members").splitlines()))
        except AssertionError:
            return None
        told = [member for member in told if member["role"] != "out"]
        are_whole = all(member["votes"] and member["answers"] for member in told)
        return {member["name"]: member["id"] for member in told} if len(told) == len(IDS) and are_whole else None


def clients(three, history, seed):
    addresses = [f"hdfs://{three.rpc[name]}" for name in IDS]
    ways = [*ALL_PROVIDERS.values(), *ALL_PROVIDERS.values(), *addresses]
    # Calls that wait at a leader which stands still.
    ways += [f"reads:{address}" for address in addresses * 2]
    # Answered by members that follow.
    ways += [f"reads:{OBSERVER}"] * 2
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", CLASSES]
    command += ["-Dlog4j.configuration=log4j-stderr.properties", "cairn.interop.Historian", three.conf, history, str(seed)]
    with open(f"{three.folder}/clients.log", "w") as log:
        return subprocess.Popen([*command, *ways], stdin=subprocess.PIPE, stderr=log, text=True)


def wipe(three, name, lasts):
    """Takes a member's disk away, unless one that was emptied before has not come back yet: a majority has to have theirs."""
    ids = three.ids()
    is_safe = ids is not None and ids[name] not in three.gone and not three.gone & set(ids.values())
    three.kill(name)
    if is_safe:
        three.gone.add(ids[name])
        shutil.rmtree(f"{three.folder}/{name}")
    time.sleep(lasts)
    three.start(name)
    return is_safe


def disturb(three, kinds, dice, counts):
    term, leader = until("somebody leads", three.leads, 90)
    kind = dice.choice(kinds)
    # Shorter and longer than an election takes.
    lasts = dice.choice([0.3, 1, 2, 4])
    # All others or one of them.
    others = [name for name in IDS if name != leader]
    others = dice.choice([others, others, others[:1], others[1:]])
    if kind == "wipe":
        kind = "wipe" if wipe(three, leader, lasts) else "kill"
    elif kind == "kill":
        three.kill(leader)
        time.sleep(lasts)
        three.start(leader)
    elif kind == "stop":
        three.processes[leader].send_signal(signal.SIGSTOP)
        time.sleep(lasts)
        three.processes[leader].send_signal(signal.SIGCONT)
    elif kind == "cut":
        three.network.cut(leader, True)
        time.sleep(lasts)
        three.network.cut(leader, False)
    else:
        three.network.part(leader, others, PARTED[kind], True)
        time.sleep(lasts)
        three.network.part(leader, others, PARTED[kind], False)
    counts[kind] = counts.get(kind, 0) + 1
    time.sleep(dice.choice([0.2, 1, 3]))


def work(three, seconds, kinds, seed, history):
    dice, counts, terms = random.Random(seed), {}, set()
    caller = clients(three, history, seed)
    time.sleep(3)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if caller.poll() is not None:
            raise AssertionError("the clients have ended")
        disturb(three, kinds, dice, counts)
        terms.add(three.leads()[0] if three.leads() else None)
    time.sleep(3)
    caller.communicate("stop\n", timeout=300)
    if caller.returncode != 0:
        raise AssertionError(f"the clients ended with {caller.returncode}")
    until("somebody leads", three.leads, 90)
    reads = sum(three.reads().values())
    print(f"        members that follow have answered {reads} reads since each was started last", flush=True)
    if not reads:
        raise AssertionError("all reads went to the leader")
    told = ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items()))
    print(f"        seed {seed}: {told}; {len(terms - {None})} terms were seen", flush=True)


def judge(*words):
    done = subprocess.run([CHECK, *words], capture_output=True, text=True)
    print("".join(f"        {line}\n" for line in done.stdout.splitlines()[-40:]), end="", flush=True)
    if done.returncode != 0:
        raise AssertionError(f"check {words}: {done.returncode} {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kinds", default="kill,wipe,stop,stop,cut,part,mute,deaf", help="what leaders suffer; twice is twice as often")
    args = parser.parse_args()
    try:
        network = Network()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"NOT RUN members that are cut off: {error}", flush=True)
        network = None
    kinds = [kind for kind in args.kinds.split(",") if network or kind in ["kill", "wipe", "stop"]]
    three = Members(os.path.abspath(args.cairn), os.path.join(here, "target", "cluster"), network)
    checks, history = Checks(), f"{three.folder}/history.jsonl"
    try:
        three.until_all_vote()
        checks.check("clients call while leaders are disturbed", lambda: work(three, args.seconds, kinds, args.seed, history))
    finally:
        three.stop()
    checks.check("what they have seen is linearizable", lambda: judge(history))
    checks.check("a stale read would be found", lambda: judge("--spoil", history))
    sys.exit(1 if checks.failed else 0)


main()
