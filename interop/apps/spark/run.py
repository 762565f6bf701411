#!/usr/bin/env python3
"""Runs the real Spark, with Hive's catalog, Delta Lake and Iceberg, on a cluster of real processes.

Each check of CHECKS runs in three folders: on the local disk, in a replicated folder and in an erasure coded one.
What it returns in the folders of the cluster must be what it returns on the local disk. The checks of CLUSTER_CHECKS
know what to expect: users, trash, syncs, DataNodes that are killed in the middle of jobs.

  interop/apps/run --cairn target/release/cairn --only spark
  interop/apps/run --hadoop --only spark                        the same on real Hadoop: tests the checks
"""

import argparse
import contextlib
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time
import urllib.request

from pyspark.sql import SparkSession

from common import BLOCK, CHECKS, CLUSTER_CHECKS, DATANODES, FOLDERS, POLICY, Files, expect, short
from cluster_checks import CHILDREN
from sides import NODE_HEAP, START_TIMEOUT, System, end_in_order, java


class Cluster(System):
    """A NameNode and DataNodes, each a process, that can be killed one by one and come back."""

    def revive(self, index):
        self.spawn("datanode", f"dn{index}", NODE_HEAP, {**self.net.keys(index), **self.node_keys}, index)
        self.processes[index + 1] = self.processes.pop()

    def state(self):
        query = f"http://{self.http}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        with urllib.request.urlopen(query, timeout=10) as answer:
            return json.load(answer)["beans"][0]

    def wait(self, seconds=START_TIMEOUT):
        """Waits until all DataNodes live and the start is over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.has_lost_one():
            with contextlib.suppress(OSError, IndexError, KeyError):
                s = self.state()
                if s["NumLiveDataNodes"] == self.datanodes and s["FSState"] == "Operational":
                    return
            time.sleep(0.2)
        sys.exit(f"{self.name} does not start, see {self.work}")


def failures(cluster):
    """What servers have said that none should ever say."""
    logs = sorted(cluster.work.glob("*.log"))
    return [f"{log.name}: {line}" for log in logs for line in log.read_text(errors="replace").splitlines()
            if " ERROR " in line or "panicked" in line]


LOG = """
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c: %m%n
"""


def session(work, name, uri, jars, master="local[2,3]", keys=()):
    """Spark with Hive's catalog and the cluster as its file system."""
    log = work / f"{name}.log"
    (work / f"{name}.properties").write_text(LOG.format(log=log))
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1536m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{work}/{name}.properties "
                                         f"-Dderby.system.home={work} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
                                         "-Djava.net.preferIPv4Stack=true",
        "spark.jars": ",".join(map(str, jars)),
        "spark.pyspark.python": sys.executable,
        # Little to do for each query but what it asks of the file system.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(work / "spark"),
        "spark.sql.warehouse.dir": f"{uri}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={work}/{name}-metastore;create=true",
        "spark.hadoop.fs.defaultFS": uri,
        "spark.hadoop.dfs.blocksize": str(BLOCK),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
                                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    for where, root in {"local": f"file://{work}/local", **{where: f"{uri}/{where}" for where in FOLDERS}}.items():
        catalog = f"spark.sql.catalog.ice_{where}"
        conf.update({catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "hadoop",
                     f"{catalog}.warehouse": f"{root}/ice"})
    conf.update(keys)
    b = SparkSession.builder.master(master).appName(f"cairn-{name}").enableHiveSupport()
    for k, v in conf.items():
        b = b.config(k, v)
    spark = b.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


class Report:
    """What became of the checks."""

    def __init__(self, only):
        self.only, self.ok, self.failed = only, 0, 0

    def wants(self, name):
        return not self.only or re.search(self.only, name)

    def run(self, name, f):
        """Runs a check that raises what is wrong, says so, and returns what it returns."""
        begin = time.monotonic()
        try:
            result = f()
        except Exception as e:
            self.failed += 1
            print(f"FAILED {name}: {short(e)}", flush=True)
            return None
        self.ok += 1
        print(f"ok   {name}  {time.monotonic() - begin:.1f} s", flush=True)
        return result


def compare(f, spark, root, wanted):
    got = f(spark, root)
    expect("the result", got, wanted)


def run(report, spark, cluster, roots):
    local = roots["local"]
    for name, f in CHECKS:
        if not report.wants(name):
            continue
        try:
            wanted = f(spark, local)
        except Exception as e:
            # Nothing to compare with: the check is at fault.
            report.failed += 1
            print(f"FAILED {name}, on the local disk: {short(e)}", flush=True)
            continue
        for where in FOLDERS:
            report.run(f"{name}, {where}", lambda: compare(f, spark, roots[where], wanted))
    for name, f in CLUSTER_CHECKS:
        if report.wants(name):
            for where in FOLDERS:
                report.run(f"{name}, {where}", lambda: f(spark, cluster, where, roots[where]))


def run_child(name, root, work, uri, jars):
    work = pathlib.Path(work)
    where = root.rsplit("/", 1)[1]
    # The slow job has two threads, the stream the others.
    keys = {}
    if name == "alice":
        keys = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"{root}/events",
                "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
    CHILDREN[name](session(work, f"{name}-{where}", uri, jars.split(","), "local[4]", keys), root)


def main():
    if sys.argv[1:2] == ["--child"]:
        return run_child(*sys.argv[2:])
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    system = p.add_mutually_exclusive_group(required=True)
    system.add_argument("--cairn", type=pathlib.Path, help="the binary")
    system.add_argument("--hadoop", action="store_true", help="real Hadoop 3.5.0 in its place")
    p.add_argument("--jars", type=pathlib.Path, required=True, help="where Delta Lake, Iceberg and Avro are")
    p.add_argument("--checks", metavar="REGEX", help="only those with such a name")
    p.add_argument("--work", type=pathlib.Path, help="where everything is kept (default: a temporary folder)")
    p.add_argument("--keep", action="store_true", help="keep it, also if nothing fails")
    args = p.parse_args()
    end_in_order()
    work = pathlib.Path(tempfile.mkdtemp(prefix="cairn-spark-", dir=args.work)).resolve()
    keys = {"dfs.namenode.safemode.extension": "0", "dfs.namenode.redundancy.considerLoad": "false",
            "dfs.heartbeat.interval": "1", "fs.trash.interval": "60"}

    def role(name, heap):
        return java(heap, "cairn.interop.Daemons", name) if args.hadoop else [str(args.cairn.resolve()), name]

    begin = time.monotonic()
    cluster = Cluster("hadoop" if args.hadoop else "cairn", work / "cluster", DATANODES, keys, {}, role, None)
    report = Report(args.checks)
    try:
        cluster.start()
        cluster.wait()
        spark = session(work, "main", cluster.uri, sorted(args.jars.glob("*.jar")))
        (work / "local").mkdir()
        roots = {"local": f"file://{work}/local", **{where: f"{cluster.uri}/{where}" for where in FOLDERS}}
        for where in FOLDERS:
            f = Files(spark, roots[where])
            f.fs.mkdirs(f.path())
            if where == "coded":
                f.fs.setErasureCodingPolicy(f.path(), POLICY)
        run(report, spark, cluster, roots)
        if not args.hadoop:
            report.run("no server failed", lambda: expect("lines of logs", failures(cluster), []))
        spark.stop()
    finally:
        cluster.stop()
        if args.keep or report.failed:
            print(f"logs are in {work}")
        else:
            shutil.rmtree(work)
    print(f"{report.ok} ok, {report.failed} failed, {time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
