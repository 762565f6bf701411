"""Hadoop's own programs, as released, each a command of its own: benchmarks, and jobs by MapReduce's local runner."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from sides import CLIENT_HEAP, INTEROP, ROOT, spawn

POM = ROOT / "bench" / "jobs.pom.xml"
LIB = ROOT / "target" / "bench" / "jobs"
# The package of TeraGen, TeraSort and TeraValidate.
TERA = "org.apache.hadoop.examples.terasort"
# What TestDFSIO tells at its end.
OWN_THROUGHPUT = re.compile(r"Throughput mb/sec: *([\d.]+)", re.I)


def fetch():
    """Fetches the programs where that has not happened yet."""
    done = LIB / ".complete"
    if done.exists() and done.stat().st_mtime > POM.stat().st_mtime:
        return
    shutil.rmtree(LIB, ignore_errors=True)
    subprocess.run(["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime",
                    f"-DoutputDirectory={LIB}"], check=True, stdin=subprocess.DEVNULL)
    done.touch()


class Program:
    """The command of one program, and what it did to one system."""

    def __init__(self, system, local, log, maps, poll):
        self.system, self.local, self.log, self.maps, self.poll = system, local, log, maps, poll

    def __call__(self, main, *args, properties=(), jobs=True):
        """Runs a program; seconds, its processor seconds, its peak memory in MiB, and what it printed."""
        command = ["java", CLIENT_HEAP, "-Djava.net.preferIPv4Stack=true", "-Dlog4j.configuration=log4j-stderr.properties",
                   *properties, "-cp", f"{self.system.conf}:{INTEROP}/classes:{LIB}/*", main]
        if jobs:
            command += ["-Dmapreduce.framework.name=local", f"-Dhadoop.tmp.dir={self.local}",
                        f"-Dmapreduce.local.map.tasks.maximum={self.maps}",
                        f"-Dmapreduce.local.reduce.tasks.maximum={self.maps}", f"-Dmapreduce.job.maps={self.maps}",
                        f"-Dmapreduce.job.reduces={self.maps}",
                        f"-Dmapreduce.client.progressmonitor.pollinterval={self.poll}"]
        begin = time.monotonic()
        with tempfile.TemporaryFile("w+", dir=self.local) as out:
            p = spawn([*command, *map(str, args)], stdout=out, stderr=self.log, stdin=subprocess.DEVNULL, cwd=self.local)
            _, status, used = os.wait4(p.pid, 0)
            seconds = time.monotonic() - begin
            p.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        if p.returncode != 0:
            sys.exit(f"{main} {' '.join(map(str, args))} on {self.system.name}: {p.returncode}, see {self.log.name}\n{text}")
        return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text
