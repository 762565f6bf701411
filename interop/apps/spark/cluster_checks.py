"""Checks of what only a cluster has: users, trash, syncs, DataNodes that are killed in the middle of jobs."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pyspark

from checks import stream_query, stream_result, stream_source
from common import Files, cluster_check, digest, expect, refused, rows
from sides import free_port, spawn

# Seconds that a job may take which has to be caught in its middle.
JOB_TIMEOUT = 180


@cluster_check
def file_system_calls(spark, cluster, where, root):
    f = Files(spark, root)
    jvm, fs, at = spark._jvm, f.fs, f.path
    coded = where == "coded"
    data = random.Random(2).randbytes(10 << 20)
    f.put("calls/a", data)
    f.put("calls/b", b"b")
    expect("a rename onto a file", fs.rename(at("calls/a"), at("calls/b")), False)
    expect("a rename", fs.rename(at("calls/a"), at("calls/c")), True)
    expect("what was renamed", f.get("calls/c") == data, True)
    summary = fs.getContentSummary(at("calls"))
    # Ten cells of data and three of parity for each of two stripes; `b` is a byte and three of parity.
    space = (16 << 20) + 4 if coded else 3 * ((10 << 20) + 1)
    expect("the summary", (summary.getLength(), summary.getFileCount(), summary.getSpaceConsumed()),
           ((10 << 20) + 1, 2, space))
    expect("whether a file is erasure coded", fs.getErasureCodingPolicy(at("calls/c")) is not None, coded)

    out = fs.create(at("calls/open"))
    out.write(data[:5_000_000])
    out.hflush()
    out.hsync()
    other = Files(spark, root, "somebody")
    if not coded:
        expect("what was flushed", other.get("calls/open") == data[:5_000_000], True)
    expect("whether it can be synced", out.hasCapability("hsync"), not coded)
    out.close()
    expect("what was closed", other.get("calls/open") == data[:5_000_000], True)
    if coded:
        refused(lambda: fs.append(at("calls/open")), "Append on EC file without new block is not supported")
        flag = jvm.org.apache.hadoop.fs.CreateFlag
        out = fs.append(at("calls/open"), jvm.java.util.EnumSet.of(flag.APPEND, flag.NEW_BLOCK), 4096, None)
    else:
        out = fs.append(at("calls/open"))
    out.write(data[5_000_000:])
    out.close()
    expect("what was appended", f.get("calls/open") == data, True)
    expect("checksums of the same bytes", fs.getFileChecksum(at("calls/c")) is not None, True)

    move = jvm.org.apache.hadoop.fs.Trash.moveToAppropriateTrash
    expect("a move to the trash", move(fs, at("calls/c"), f.conf), True)
    trash = fs.getTrashRoot(at("calls/c")).toString()
    there = Files(spark, f"{trash}/Current{at('calls').toUri().getPath()}")
    expect("what is in the trash", there.get("c") == data, True)
    expect("what was moved away", fs.exists(at("calls/c")), False)


@cluster_check
def other_users(spark, cluster, where, root):
    f, at = Files(spark, root), Files(spark, root).path
    alice, bob = (Files(spark, root, u) for u in ("alice", "bob"))
    denied = "Permission denied: user="
    refused(lambda: alice.put("mine", b""), "AccessControlException", f'{denied}alice, access=WRITE, inode="/{where}"')
    f.fs.mkdirs(at("home-alice"))
    refused(lambda: bob.fs.setOwner(at("home-alice"), "bob", None), "user=bob is not the owner of inode=")
    f.fs.setOwner(at("home-alice"), "alice", "alice")
    permission = spark._jvm.org.apache.hadoop.fs.permission.FsPermission
    alice.fs.setPermission(at("home-alice"), permission("700"))
    alice.put("home-alice/secret", b"s")
    refused(lambda: bob.get("home-alice/secret"), f"{denied}bob, access=EXECUTE")
    refused(lambda: bob.tree("home-alice"), f"{denied}bob, access=READ_EXECUTE")
    refused(lambda: bob.fs.delete(at("home-alice"), True), f"{denied}bob")
    expect("the owner", f.fs.getFileStatus(at("home-alice/secret")).getOwner(), "alice")


def child(spark, cluster, name, root, env=None):
    """Starts this script again with a session of its own."""
    work = cluster.work.parent
    jars = spark.conf.get("spark.jars")
    log = open(work / f"{name}-{root.rsplit('/', 1)[1]}.out", "wb")
    return spawn([sys.executable, str(pathlib.Path(__file__).with_name("run.py")), "--child", name, root, str(work), cluster.uri, jars],
                 stdout=log, stderr=log, stdin=subprocess.PIPE, env={**os.environ, **(env or {})})


def alice(spark, root):
    """A user's jobs, and an application that goes on until it is told to end."""
    rows(spark, 4000).write.parquet(f"{root}/home-alice/table")
    refused(lambda: spark.range(5).write.parquet(f"{root}/not-hers"), "Permission denied: user=alice, access=WRITE")
    print("DONE", spark.sparkContext.applicationId, flush=True)
    sys.stdin.read()
    spark.stop()


@cluster_check
def event_log_of_a_user(spark, cluster, where, root):
    f = Files(spark, root)
    for name in ("home-alice", "events"):
        f.fs.mkdirs(f.path(name))
        f.fs.setOwner(f.path(name), "alice", "alice")
    p = child(spark, cluster, "alice", root, {"HADOOP_USER_NAME": "alice"})
    log = cluster.work.parent / f"alice-{where}.out"
    until = time.monotonic() + JOB_TIMEOUT
    while b"DONE" not in log.read_bytes() and p.poll() is None and time.monotonic() < until:
        time.sleep(0.2)
    done = re.search(rb"DONE (\S+)", log.read_bytes())
    if not done:
        p.kill()
        raise AssertionError(f"the session did not come to its end, see {log}")
    app = done[1].decode()
    df = spark.read.parquet(f"{root}/home-alice/table")
    expect("the rows", (df.count(), df.select("id").distinct().count()), (4000, 4000))
    names = f.tree("home-alice/table")
    expect("the files", (len([n for n in names if "part-" in n]), [n for n in names if "temporary" in n]), (4, []))
    expect("the owner", {s.getOwner() for s in f.fs.listStatus(f.path("home-alice/table"))}, {"alice"})
    # The log is there while the application runs, also in an erasure coded folder: Spark asks for copies.
    open_log = f.get(f"events/{app}.inprogress").decode()
    expect("a job's end in the log of a running application", "SparkListenerJobEnd" in open_log, True)
    p.stdin.close()
    p.wait(60)
    closed = f.get(f"events/{app}").decode().splitlines()
    expect("the log's end", json.loads(closed[-1])["Event"], "SparkListenerApplicationEnd")
    expect("whether the log is erasure coded", f.fs.getErasureCodingPolicy(f.path(f"events/{app}")) is not None, False)
    history_server(cluster, root, app)


def history_server(cluster, root, app):
    home, port = pathlib.Path(pyspark.__file__).parent, free_port()
    keys = {"spark.history.fs.logDirectory": f"{root}/events", "spark.history.ui.port": port,
            "spark.hadoop.fs.defaultFS": cluster.uri}
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               *(f"-D{k}={v}" for k, v in keys.items()),
               "-cp", f"{home}/jars/*", "org.apache.spark.deploy.history.HistoryServer"]
    log = open(cluster.work.parent / "history.out", "ab")
    server = spawn(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    jobs = f"http://127.0.0.1:{port}/api/v1/applications/{app}/jobs"
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(jobs, timeout=30) as answer:
                    states = {j["status"] for j in json.load(answer)}
                expect("what became of the jobs", "SUCCEEDED" in states, True)
                return
            time.sleep(0.3)
        raise AssertionError("the history server does not know the application")
    finally:
        server.kill()
        server.wait()


def victim(spark, root):
    """A stream and a job that are killed."""
    def slow(part):
        for row in part:
            time.sleep(0.01)
            yield row

    print("JVM", spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    stream_query(spark, root, "killed", lambda df: df.repartition(3))
    numbers = spark.sparkContext.parallelize(range(40_000), 2).map(lambda i: (i,)).mapPartitions(slow)
    spark.createDataFrame(numbers, "id long").write.csv(f"{root}/killed-job")


@cluster_check
def a_stream_and_a_job_that_are_killed(spark, cluster, where, root):
    f = Files(spark, root)
    stream_source(spark, root, "killed-in", 0, 20)
    p = child(spark, cluster, "victim", root)
    log = cluster.work.parent / f"victim-{where}.out"
    until = time.monotonic() + JOB_TIMEOUT
    reached = False
    while p.poll() is None and time.monotonic() < until and not reached:
        time.sleep(0.1)
        reached = len(f.tree("killed-state/commits")) >= 4 and len(f.tree("killed-job")) > 0
    os.kill(int(re.search(rb"JVM (\d+)", log.read_bytes())[1]), signal.SIGKILL)
    p.kill()
    p.wait()
    expect("whether it was killed in its middle", reached, True)
    commits = len(f.tree("killed-state/commits"))
    expect("whether the stream was in its middle", 4 <= commits < 20, True)
    stream_query(spark, root, "killed").awaitTermination()
    (count, _), different = stream_result(spark, root, "killed")
    expect("rows and different rows", (count, different), (2000, 2000))
    spark.range(1000).write.mode("overwrite").csv(f"{root}/killed-job")
    expect("the job's files", [n for n in f.tree("killed-job") if "temporary" in n], [])
    expect("the job's rows", spark.read.csv(f"{root}/killed-job").count(), 1000)


@cluster_check
def quiet_clients(spark, cluster, where, root):
    """So far Hadoop's client has had nothing to complain about."""
    lines = (cluster.work.parent / "main.log").read_text().splitlines()
    noise = [line for line in lines if re.search(r" (WARN|ERROR) org\.apache\.hadoop\.(hdfs|ipc|fs)\.", line)]
    expect("warnings", noise, [])


def with_killed(cluster, nodes, job, started):
    """Runs a job, which is told how to ask whether all is done, and kills DataNodes, one after the other, once
    `started` says that it is in its middle."""
    killed, ended = [], threading.Event()

    def kill():
        while not started():
            if ended.wait(0.02):
                return
        for n in nodes:
            cluster.kill(n)
            killed.append(n)
            time.sleep(0.5)

    t = threading.Thread(target=kill)
    t.start()
    try:
        result = job(lambda: not t.is_alive())
        if not killed:
            raise AssertionError("the job ended before a DataNode was killed")
        return result
    finally:
        ended.set()
        t.join()
        for n in killed:
            cluster.revive(n)
        cluster.wait()


@cluster_check
def datanodes_killed_while_a_job_reads(spark, cluster, where, root):
    df = spark.range(0, 1_200_000, 1, 4).selectExpr("id", "sha2(cast(id as string), 256) as s")
    df.write.parquet(f"{root}/survives")
    wanted = digest(df)

    def read(done):
        """Reads on until the DataNodes are gone, and once more."""
        results, last = [], False
        while not last:
            last = done()
            results.append(digest(spark.read.parquet(f"{root}/survives")))
        return results

    for nodes in ([0], [1, 2]):
        begin = time.monotonic()
        got = with_killed(cluster, nodes, read, lambda: time.monotonic() > begin + 0.5)
        expect(f"what was read with {len(nodes)} killed", got, [wanted] * len(got))


@cluster_check
def datanodes_killed_while_a_job_writes(spark, cluster, where, root):
    df = spark.range(0, 1_600_000, 1, 4).selectExpr("id", "sha2(cast(id as string), 256) as s")
    wanted = digest(df)
    f = Files(spark, root)
    for nodes in ([3], [4, 5]):
        name = f"written-{len(nodes)}"
        with_killed(cluster, nodes, lambda _: df.write.option("compression", "none").csv(f"{root}/{name}"),
                    lambda: sum("part-" in n for n in f.tree(name)) >= 2)
        got = digest(spark.read.schema("id long, s string").csv(f"{root}/{name}"))
        expect(f"what was written with {len(nodes)} killed", got, wanted)


CHILDREN = {"alice": alice, "victim": victim}
