"""Programs that code a turn a line: that of this folder, with Cairn's coder and others' in Rust and C, and any other."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from sides import spawn  # noqa: E402

# What ISA-L is built with, and the packages of Debian that have it.
ISAL_TOOLS = {"nasm": "nasm", "autoconf": "autoconf", "automake": "automake", "libtoolize": "libtool"}


class Program:
    """A program that answers a turn a line."""

    def __init__(self, command):
        self.p = spawn([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit(f"{self.p.args[0]}: {' '.join(map(str, words))}: {answer or 'it has ended'}")
        return float(answer)

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def missing_tools():
    """Packages of Debian without which this folder's program is not built."""
    return [package for tool, package in ISAL_TOOLS.items() if not shutil.which(tool)]


def serving():
    """This folder's program, built where it has to be."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target"))
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", HERE / "Cargo.toml"], check=True)
    return Program([target / "release" / "cairn-bench-codec", "serve"])
