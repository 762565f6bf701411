"""Spark as PyPI has it, in a process of its own that serves both systems, and programs that come the same way.

What it does is in `spark_jobs.py`: one job a line, as JSON, and one line back.
"""

import json
import shutil
import subprocess
import sys

from room import HERE, ROOT
from sides import spawn

REQUIREMENTS = HERE / "spark.requirements.txt"
VENV = ROOT / "target" / "bench" / "spark"


def fetch():
    """Fetches all of it where that has not happened yet."""
    done = VENV / ".complete"
    if done.exists() and done.stat().st_mtime > REQUIREMENTS.stat().st_mtime:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    # The queries come with a program that wants more than is needed here.
    subprocess.run([VENV / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r",
                    REQUIREMENTS], check=True)
    done.touch()


class Spark:
    """A session with some threads; use it in a `with`."""

    def __init__(self, room, threads):
        fetch()
        self.room, self.threads = room, threads
        self.folder = room.work / "spark"
        self.folder.mkdir()

    def __enter__(self):
        self.p = spawn([VENV / "bin" / "python", HERE / "spark_jobs.py", self.folder, str(self.threads)],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.room.log, text=True)
        return self

    def __call__(self, job, **words):
        """Does a job: its seconds, the processor seconds of Spark, its answer, and what is known of its stages."""
        self.p.stdin.write(json.dumps({"job": job, "words": words}) + "\n")
        self.p.stdin.flush()
        told = json.loads(self.p.stdout.readline() or '{"error": "it has ended"}')
        if "error" in told:
            sys.exit(f"Spark: {job} {words}: {told['error']}, see {self.room.log.name}")
        return told

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.wait()
