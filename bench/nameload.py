"""The load generator of calls on names (`crates/net/examples/nameload`)."""

import json
import os
import subprocess
import sys

from sides import spawn


class NameLoad:
    """Beside one NameNode, for its superuser; `more` are further words for the program."""

    def __init__(self, program, address, *more, log=None):
        self.address = address
        command = [str(program), address, os.environ.get("USER") or "root", *more]
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def begin(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def end(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.address}: the load generator has ended")
        return json.loads(line)

    def __call__(self, *words, strict=True):
        self.begin(*words)
        answer = self.end()
        if strict and (answer.get("error") or answer.get("failed")):
            sys.exit(f"{self.address}: {' '.join(map(str, words))}: {answer}")
        return answer

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
