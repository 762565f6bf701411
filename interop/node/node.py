"""The own tests of the npm package webhdfs against a cluster, on copied and on erasure coded files."""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import Checks, Cluster  # noqa: E402

MODULES = f"{HERE}/target/npm/node_modules"
TESTS = 20
# Hadoop appends to an erasure coded file only with a flag that this client cannot set, so what these append is not there.
NO_APPEND = {
    "WebHDFS should append content to an existing file with no user",
    "WebHDFS should append stream content to an existing file",
    "WebHDFS should open and read a file",
    "WebHDFS should open and read a file stream",
}


def outcomes(port):
    """The titles of the tests that passed, and of those that failed with why."""
    command = ["node", f"{MODULES}/mocha/bin/_mocha", "--reporter", "json", f"{MODULES}/webhdfs/test"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "WEBHDFS_PORT": str(port)})
    told = done.stdout[done.stdout.index("{\n"):]
    told = json.loads(told)
    passed = {test["fullTitle"] for test in told["passes"]}
    failed = {test["fullTitle"]: test["err"].get("message", "") for test in told["failures"]}
    return passed, failed


def run(cluster, fail=frozenset()):
    passed, failed = outcomes(cluster.http)
    assert set(failed) == fail, failed
    assert len(passed) == TESTS - len(fail), sorted(passed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    args = parser.parse_args()
    checks = Checks()
    # One of the tests appends as nobody to a file of somebody else.
    keys = {"dfs.permissions.enabled": "false"}
    cluster = Cluster(os.path.abspath(args.cairn), f"{HERE}/target/cluster", 6, keys)
    try:
        cluster.until_registered(6)
        # One lists it, and looks at the answer's head only.
        cluster.run("fs", "touchz", "/file-2")
        checks.check("the client's tests on copied files", lambda: run(cluster))
        cluster.run("fs", "mkdir", "-p", "/files")
        cluster.run("ec", "-enablePolicy", "-policy", "RS-3-2-1024k")
        cluster.run("ec", "-setPolicy", "-path", "/files", "-policy", "RS-3-2-1024k")
        checks.check("the same on erasure coded files", lambda: run(cluster, NO_APPEND))
    finally:
        cluster.stop()
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
