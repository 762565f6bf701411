"""HBase on three NameNodes of which the one that leads is killed again and again."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", ".."), os.path.join(here, "..", "..", "ha")]
from cluster import Checks  # noqa: E402
from ha import Three, tell  # noqa: E402

DATANODES = 4


class Store:
    """The real program, at work."""

    def __init__(self, three, path):
        command = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", path, f"-Dstores.home={here}", f"-Dstores.classes={path}"]
        command += [f"-Dlog4j2.configurationFile={here}/src/conf/client.properties", "-Djava.net.preferIPv4Stack=true"]
        command += ["cairn.interop.HBaseFailovers", three.conf, f"{three.folder}/hbase"]
        self.log = f"{three.folder}/hbase-client.log"
        with open(self.log, "w") as log:
            # HBase's servers are its children, and end with it.
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)

    def until_it_works(self):
        for line in self.process.stdout:
            if line.strip() == "writes":
                return
        raise AssertionError(f"HBase does not work, see {self.log}")

    def must_run(self):
        if self.process.poll() is not None:
            raise AssertionError(f"HBase has ended, see {self.log}")

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self):
        told, _ = self.process.communicate("stop\n", timeout=600)
        if self.process.returncode != 0:
            raise AssertionError(f"{told} see {self.log}")
        return json.loads(told.splitlines()[-1])


def fail_over(three, store, failovers):
    waits = three.kill_leaders(failovers, 4, before=store.must_run)
    time.sleep(4)
    tell(waits)
    print(f"        {json.dumps(store.end())}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--classes", required=True)
    parser.add_argument("--failovers", type=int, default=10)
    args = parser.parse_args()
    three = Three(os.path.abspath(args.cairn), os.path.join(here, "target", "failovers"), None)
    checks, store = Checks(), None
    try:
        three.until_all_vote()
        three.start_datanodes(DATANODES)
        store = Store(three, args.classes)
        checks.check("HBase writes", store.until_it_works)
        checks.check(f"HBase works on through {args.failovers} failovers and loses no row",
                     lambda: fail_over(three, store, args.failovers))
        checks.check("no block is damaged or missing", three.until_healthy)
    finally:
        if store:
            store.kill()
        three.stop()
    sys.exit(1 if checks.failed else 0)


main()
