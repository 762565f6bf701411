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
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import pyspark
from pyspark.sql import SparkSession

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))
from sides import NODE_HEAP, START_TIMEOUT, System, end_in_order, free_port, java, spawn

# The folders of the cluster: three copies, and erasure coded.
FOLDERS = ("copies", "coded")
POLICY = "RS-6-3-1024k"
# Nine units, and as many to spare as are killed at once.
DATANODES = 12
# Small blocks, so that files of some MiB have several block groups.
BLOCK = 2 << 20
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Seconds that a job may take which has to be caught in its middle.
JOB_TIMEOUT = 180

CHECKS, CLUSTER_CHECKS = [], []


def check(f):
    CHECKS.append((f.__name__.replace("_", " "), f))
    return f


def cluster_check(f):
    CLUSTER_CHECKS.append((f.__name__.replace("_", " "), f))
    return f


# ---------------------------------------------------------------- what checks share


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")


def refused(call, *words):
    """Runs what must fail with an exception that says all words."""
    try:
        call()
    except Exception as e:
        missing = [w for w in words if w not in str(e)]
        if missing:
            raise AssertionError(f"the exception does not say {missing}: {str(e)[:600]}") from e
        return
    raise AssertionError("it was not refused")


def rows(spark, n, parts=4):
    return spark.range(0, n, 1, parts).selectExpr(
        "id", "id % 7 as k", "cast(id * 3.5 as double) as d", "concat('name-', id) as s",
        "date_add(date'2020-01-01', cast(id % 400 as int)) as day",
        "timestamp_seconds(1600000000 + id * 61) as t", "if(id % 11 = 0, null, id * id) as n",
        "cast(id as decimal(20, 2)) as money", "array(id, id + 1) as a",
        "named_struct('x', id, 'y', cast(id as string)) as st")


def digest(df):
    """A number of rows and a sum over them that does not depend on their order."""
    r = df.selectExpr("count(1)", "sum(cast(xxhash64(*) as decimal(38, 0)))").collect()[0]
    return r[0], str(r[1])


def short(e):
    # Without the stack trace of Java.
    text = str(e).split("\n\tat ")[0] or type(e).__name__
    return text if len(text) < 1500 else text[:1500] + " ..."


class Files:
    """The file system of a folder, by Hadoop's own classes in Spark's JVM."""

    def __init__(self, spark, root, user=None):
        self.jvm, self.root = spark._jvm, root
        self.conf = spark._jsc.hadoopConfiguration()
        uri = self.jvm.java.net.URI(root)
        kind = self.jvm.org.apache.hadoop.fs.FileSystem
        self.fs = kind.newInstance(uri, self.conf, user) if user else kind.get(uri, self.conf)

    def path(self, name=""):
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)

    def tree(self, name=""):
        """All files below a folder, without what is random in their names."""
        base, found = self.path(name), []
        if not self.fs.exists(base):
            return found
        walk = self.fs.listFiles(base, True)
        skip = len(base.toUri().getPath().rstrip("/")) + 1
        while walk.hasNext():
            p = walk.next().getPath().toUri().getPath()[skip:]
            if not p.endswith(".crc"):
                found.append(UUID.sub("UUID", p))
        return sorted(found)

    def put(self, name, data):
        out = self.fs.create(self.path(name))
        out.write(data)
        out.close()

    def get(self, name):
        i = self.fs.open(self.path(name))
        try:
            return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(i))
        finally:
            i.close()


# ---------------------------------------------------------------- checks: the same on a local disk and on the cluster


def format_check(name, options=None):
    def run(spark, root):
        df = rows(spark, 20_000)
        if name == "csv":
            df = df.drop("a", "st")
        if name == "text":
            df = df.selectExpr("concat_ws('|', s, cast(n as string)) as value")
        there = f"{root}/format-{name}"
        df.write.format(name).options(**(options or {})).save(there)
        once = spark.read.format(name).schema(df.schema).load(there)
        some = once if name == "text" else once.where("id < 5000").select("id", "s", "n")
        result = digest(once), digest(some)
        df.limit(100).write.format(name).mode("append").save(there)
        more = spark.read.format(name).schema(df.schema).load(there)
        return *result, digest(more), Files(spark, root).tree(f"format-{name}")

    CHECKS.append((f"write and read {name}", run))


for one in ("parquet", "orc", "csv", "json", "text", "avro"):
    format_check(one, {"compression": "gzip"} if one in ("csv", "json", "text") else None)


@check
def files_of_many_block_groups(spark, root):
    # Random strings, so that nothing is compressed: 2 files of about 35 MB.
    df = spark.range(0, 1_000_000, 1, 2).selectExpr("id", "sha2(cast(id as string), 256) as s")
    df.write.parquet(f"{root}/large")
    back = spark.read.parquet(f"{root}/large")
    df.write.option("compression", "none").mode("overwrite").csv(f"{root}/large-csv")
    lines = spark.read.schema("id long, s string").csv(f"{root}/large-csv")
    some = back.where("id between 600000 and 600010")
    return digest(back), digest(lines), digest(some), digest(back.select("s"))


@check
def sort_and_join(spark, root):
    a = rows(spark, 50_000)
    a.write.parquet(f"{root}/join-a")
    spark.range(0, 50_000, 3).selectExpr("id", "id * 2 as twice").write.orc(f"{root}/join-b")
    j = spark.read.parquet(f"{root}/join-a").join(spark.read.orc(f"{root}/join-b"), "id")
    j.orderBy("id", ascending=False).write.json(f"{root}/join-c")
    return digest(spark.read.schema(j.schema).json(f"{root}/join-c"))


@check
def partitions_and_dynamic_overwrite(spark, root):
    there = f"{root}/partitioned"
    df = rows(spark, 5_000)
    df.write.partitionBy("k").parquet(there)
    before = digest(spark.read.parquet(there).select("id", "k"))
    change = df.where("k in (1, 2)").selectExpr("id + 1000000 as id", "s", "k")
    change.write.partitionBy("k").mode("overwrite").option("partitionOverwriteMode", "dynamic").parquet(there)
    change.where("k = 1").write.partitionBy("k").mode("append").parquet(there)
    after = spark.read.parquet(there)
    counts = [tuple(r) for r in after.groupBy("k").count().orderBy("k").collect()]
    one = digest(after.where("k = 1").select("id"))
    return before, digest(after.select("id", "k")), one, counts, Files(spark, root).tree("partitioned")


def committer_check(version):
    def run(spark, root):
        there = f"{root}/committer-{version}"
        mark = tempfile.mkdtemp()

        def fails_once(index, part):
            for n, row in enumerate(part):
                once = pathlib.Path(mark, str(index))
                if n == 50 and index % 2 and not once.exists():
                    once.touch()
                    raise RuntimeError("this task is to be tried again")
                yield row

        data = spark.sparkContext.parallelize(range(800), 4).mapPartitionsWithIndex(fails_once)
        df = spark.createDataFrame(data.map(lambda i: (i, str(i))), "id long, s string")
        options = {"mapreduce.fileoutputcommitter.algorithm.version": str(version)}
        df.write.options(**options).mode("overwrite").parquet(there)
        # The old API's committer with the same key, which it takes from the configuration of the job.
        conf = {**options, "mapreduce.output.fileoutputformat.outputdir": there + "-rdd"}
        spark.sparkContext.parallelize([(i, i) for i in range(500)], 3).saveAsNewAPIHadoopFile(
            there + "-rdd", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",
            "org.apache.hadoop.io.IntWritable", "org.apache.hadoop.io.IntWritable", conf=conf)
        shutil.rmtree(mark)
        f = Files(spark, root)
        return (digest(spark.read.parquet(there)), digest(spark.read.text(there + "-rdd")),
                f.tree(f"committer-{version}"), f.tree(f"committer-{version}-rdd"))

    CHECKS.append((f"file output committer {version}, tasks that fail once", run))


committer_check(1)
committer_check(2)


@check
def a_job_that_fails_leaves_no_files(spark, root):
    boom = spark.range(0, 2000, 1, 4).selectExpr("id", "if(id = 1999, raise_error('on purpose'), id) as x")
    refused(lambda: boom.write.parquet(f"{root}/failed"), "on purpose")
    return Files(spark, root).tree("failed")


@check
def a_cancelled_job_leaves_no_files(spark, root):
    def slow(part):
        for row in part:
            time.sleep(0.005)
            yield row

    numbers = spark.sparkContext.parallelize(range(20_000), 4).map(lambda i: (i,)).mapPartitions(slow)
    df = spark.createDataFrame(numbers, "id long")
    f, seen = Files(spark, root), []

    def cancel():
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if any("part-" in n for n in f.tree("cancelled")):
                seen.append(True)
                break
            time.sleep(0.1)
        spark.sparkContext.cancelAllJobs()

    t = threading.Thread(target=cancel)
    t.start()
    refused(lambda: df.write.option("compression", "none").json(f"{root}/cancelled"), "cancelled")
    t.join()
    until = time.monotonic() + 20
    # Tasks that are killed end later than the job.
    while f.tree("cancelled") and time.monotonic() < until:
        time.sleep(0.2)
    return seen, f.tree("cancelled")


@check
def hive_catalog(spark, root):
    db = "db_" + root.rsplit("/", 1)[1]
    out = []

    def sql(text):
        return spark.sql(text.replace("DB", db))

    sql(f"CREATE DATABASE DB LOCATION '{root}/{db}.db'")
    rows(spark, 1000).select("id", "s", "k").write.saveAsTable(f"{db}.saved")
    sql("INSERT INTO DB.saved SELECT id + 1000, s, k FROM DB.saved")
    rows(spark, 10).select("id", "s", "k").write.insertInto(f"{db}.saved")
    out.append(digest(sql("SELECT * FROM DB.saved")))
    sql("CREATE TABLE DB.ctas USING orc PARTITIONED BY (k) AS SELECT * FROM DB.saved")
    sql("ALTER TABLE DB.ctas RENAME TO DB.renamed")
    sql("ALTER TABLE DB.renamed ADD COLUMNS (extra INT)")
    sql("INSERT OVERWRITE TABLE DB.renamed PARTITION (k = 3) SELECT id, s, 7 FROM DB.saved WHERE k = 3")
    sql("ALTER TABLE DB.renamed DROP PARTITION (k = 5)")
    sql("ALTER TABLE DB.renamed ADD PARTITION (k = 50)")
    sql("ALTER TABLE DB.renamed PARTITION (k = 4) RENAME TO PARTITION (k = 40)")
    out.append([r[0] for r in sql("SHOW PARTITIONS DB.renamed").collect()])
    out.append(digest(sql("SELECT id, s, extra, k FROM DB.renamed")))
    # Tables of Hive's own formats: written through Hive's classes and its staging folders.
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    spark.conf.set("spark.sql.hive.convertMetastoreOrc", "false")
    spark.conf.set("spark.sql.hive.convertMetastoreParquet", "false")
    for kind in ("TEXTFILE", "ORC", "PARQUET"):
        sql(f"CREATE TABLE DB.h_{kind} (id BIGINT, s STRING) PARTITIONED BY (k BIGINT) STORED AS {kind}")
        sql(f"INSERT INTO DB.h_{kind} PARTITION (k) SELECT id, s, k % 3 FROM DB.saved")
        sql(f"INSERT OVERWRITE TABLE DB.h_{kind} PARTITION (k) SELECT id, s, k FROM DB.saved WHERE k < 2")
        sql(f"INSERT INTO DB.h_{kind} PARTITION (k = 99) SELECT id, s FROM DB.saved")
        out.append((kind, digest(sql(f"SELECT * FROM DB.h_{kind}"))))
    f = Files(spark, root)
    f.put("load-me", b"1\x01one\n2\x01two\n")
    sql("CREATE TABLE DB.loaded (id BIGINT, s STRING) STORED AS TEXTFILE")
    # Spark loads from the default file system, which is the cluster.
    if root.startswith("file:"):
        sql(f"LOAD DATA LOCAL INPATH '{root}/load-me' INTO TABLE DB.loaded")
        f.fs.delete(f.path("load-me"), False)
    else:
        sql(f"LOAD DATA INPATH '{root}/load-me' INTO TABLE DB.loaded")
    out.append((f.fs.exists(f.path("load-me")), digest(sql("SELECT * FROM DB.loaded"))))
    sql(f"INSERT OVERWRITE DIRECTORY '{root}/{db}-export' STORED AS ORC SELECT * FROM DB.saved")
    out.append(digest(spark.read.orc(f"{root}/{db}-export")))
    sql("CREATE EXTERNAL TABLE DB.outside (id BIGINT, s STRING, k BIGINT) STORED AS ORC LOCATION "
        f"'{root}/{db}-export'")
    sql("DROP TABLE DB.outside")
    out.append(f.tree(f"{db}-export"))
    sql("TRUNCATE TABLE DB.h_TEXTFILE PARTITION (k = 99)")
    out.append(digest(sql("SELECT * FROM DB.h_TEXTFILE")))
    f.fs.mkdirs(f.path(f"{db}.db/h_orc/k=77"))
    sql("MSCK REPAIR TABLE DB.h_ORC")
    out.append([r[0] for r in sql("SHOW PARTITIONS DB.h_ORC").collect()])
    sql("ANALYZE TABLE DB.saved COMPUTE STATISTICS")
    left = [n for n in f.tree(f"{db}.db") if "staging" in n or "temporary" in n]
    sql("DROP TABLE DB.saved")
    out.append((left, f.fs.exists(f.path(f"{db}.db/saved"))))
    sql("DROP DATABASE DB CASCADE")
    out.append(f.fs.exists(f.path(f"{db}.db")))
    return out


@check
def bucketed_table(spark, root):
    name = "bucketed_" + root.rsplit("/", 1)[1]
    df = rows(spark, 3000).select("id", "s", "k")
    df.write.bucketBy(3, "id").sortBy("id").option("path", f"{root}/bucketed").saveAsTable(name)
    r = digest(spark.table(name)), spark.table(name).join(spark.table(name), "id").count()
    spark.sql(f"DROP TABLE {name}")
    return r


@check
def rdds(spark, root):
    sc = spark.sparkContext
    rdd = sc.parallelize([(f"k{i}", i) for i in range(5000)], 5)
    rdd.saveAsPickleFile(f"{root}/pickle")
    rdd.saveAsSequenceFile(f"{root}/sequence", "org.apache.hadoop.io.compress.DefaultCodec")
    rdd.map(str).saveAsTextFile(f"{root}/text-gz", "org.apache.hadoop.io.compress.GzipCodec")
    sc.setCheckpointDir(f"{root}/checkpoint")
    c = rdd.map(lambda kv: (kv[0], kv[1] * 2))
    c.checkpoint()
    df = rows(spark, 2000).checkpoint()
    jsc = spark._jsc.sc()
    jsc.range(0, 1000, 1, 3).saveAsObjectFile(f"{root}/objects")
    objects = jsc.objectFile(f"{root}/objects", 2, spark._jvm.scala.reflect.ClassTag.Any())
    pickled, sequence = sc.pickleFile(f"{root}/pickle"), sc.sequenceFile(f"{root}/sequence")
    return (sorted(pickled.collect()) == sorted(rdd.collect()), sorted(sequence.collect()) == sorted(rdd.collect()),
            sc.textFile(f"{root}/text-gz").count(), c.map(lambda kv: kv[1]).sum(), c.isCheckpointed(), digest(df),
            objects.count(), Files(spark, root).tree("objects"))


@check
def whole_files_and_globs(spark, root):
    f = Files(spark, root)
    rng = random.Random(1)
    for i in range(12):
        f.put(f"glob/y={i % 3}/f{i}.{'txt' if i % 2 else 'bin'}", rng.randbytes(1000 * i * i))
    f.put("glob/_hidden/x.txt", b"hidden")
    f.put("glob/empty.txt", b"")
    f.put("glob/ünïcode ☃ and spaces.txt", "schön\n".encode())
    sc = spark.sparkContext
    whole = sorted((p.split("/glob/")[1], len(b)) for p, b in sc.binaryFiles(f"{root}/glob/y={{0,2}}/*").collect())
    text = sorted(p.split("/glob/")[1] for p, _ in sc.wholeTextFiles(f"{root}/glob/*.txt").collect())
    binary = spark.read.format("binaryFile")
    deep = binary.option("pathGlobFilter", "*.bin").option("recursiveFileLookup", "true").load(f"{root}/glob")
    partitions = spark.read.format("binaryFile").load(f"{root}/glob/y=*")
    f.put("glob/late.txt", b"late")
    dates = {"modifiedAfter": "2020-01-01T00:00:00", "modifiedBefore": "2120-01-01T00:00:00"}
    lines = sorted(r[0] for r in spark.read.options(**dates).text(f"{root}/glob/[a-l]*.txt").collect())
    names = sorted(s.getPath().getName() for s in f.fs.globStatus(f.path("glob/y=[0-1]/f{1,3,4}*")))
    return whole, text, digest(deep.select("length", "content")), partitions.count(), lines, names


def stream_source(spark, root, name, first, count):
    f = Files(spark, root)
    f.fs.mkdirs(f.path(name))
    for i in range(first, first + count):
        lines = (json.dumps({"id": i * 100 + n, "t": f"2024-01-01T00:{i:02}:{n % 60:02}"}) for n in range(100))
        f.put(f"{name}-new", "\n".join(lines).encode())
        f.fs.rename(f.path(f"{name}-new"), f.path(f"{name}/{i}.json"))


def stream_query(spark, root, name, transform=lambda df: df):
    source = spark.readStream.schema("id long, t timestamp").option("maxFilesPerTrigger", 1).json(f"{root}/{name}-in")
    return (transform(source).writeStream.format("parquet").option("checkpointLocation", f"{root}/{name}-state")
            .trigger(availableNow=True).start(f"{root}/{name}-out"))


def stream_result(spark, root, name):
    df = spark.read.parquet(f"{root}/{name}-out")
    return digest(df), df.distinct().count()


@check
def streaming(spark, root):
    stream_source(spark, root, "stream-in", 0, 3)
    stream_query(spark, root, "stream").awaitTermination()
    first = stream_result(spark, root, "stream")
    stream_source(spark, root, "stream-in", 3, 3)
    for _ in range(2):
        stream_query(spark, root, "stream").awaitTermination()
    f = Files(spark, root)
    return first, stream_result(spark, root, "stream"), f.tree("stream-state/offsets"), f.tree("stream-state/commits")


def state_check(name, provider):
    def run(spark, root):
        folder = f"state-{name}"
        before = spark.conf.get(STATE_STORE)
        spark.conf.set(STATE_STORE, provider or before)
        try:
            def counts(df):
                return (df.withWatermark("t", "10 seconds").dropDuplicates(["id", "t"])
                        .groupBy("t").count())

            for first in (0, 3):
                stream_source(spark, root, f"{folder}-in", first, 3)
                q = stream_query(spark, root, folder, counts)
                q.awaitTermination()
        finally:
            spark.conf.set(STATE_STORE, before)
        return stream_result(spark, root, folder)

    CHECKS.append((f"streaming with state in {name}", run))


state_check("files", None)
state_check("rocksdb", ROCKSDB)


def concurrently(append):
    """Three writers that commit three times each; what was refused to them."""
    errors = []

    def writer(base):
        for i in range(3):
            try:
                append(base + i * 100)
            except Exception as e:
                errors.append(short(e))

    writers = [threading.Thread(target=writer, args=(10_000 * n,)) for n in range(1, 4)]
    for t in writers:
        t.start()
    for t in writers:
        t.join()
    return errors


MERGE = ("MERGE INTO {0} t USING (SELECT id, 'merged' as s, id % 7 as k FROM range({1}, {2})) u "
         "ON t.id = u.id AND t.k = u.k WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *")


@check
def delta_lake(spark, root):
    there = f"{root}/delta"
    table = f"delta.`{there}`"
    rows(spark, 1000).select("id", "s", "k").write.format("delta").partitionBy("k").save(there)

    def append(first):
        rows(spark, 50, 1).selectExpr(f"id + {first} as id", "s", "k").write.format("delta").mode("append").save(there)

    errors = concurrently(append)
    n = spark.read.format("delta").load(there).count()
    spark.sql(f"DELETE FROM {table} WHERE k = 1")
    spark.sql(MERGE.format(table, 500, 1500))
    old = digest(spark.read.format("delta").option("versionAsOf", 0).load(there))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"OPTIMIZE {table}").collect()
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS").collect()
    left = len([name for name in Files(spark, root).tree("delta") if name.startswith("k=")])
    new = digest(spark.read.format("delta").load(there))
    return errors, n, old, new, spark.sql(f"DESCRIBE HISTORY {table}").count(), left


@check
def iceberg(spark, root):
    catalog = "ice_" + root.rsplit("/", 1)[1]
    table = f"{catalog}.ns.t"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, s STRING, k BIGINT) USING iceberg PARTITIONED BY (k) "
              "TBLPROPERTIES ('commit.retry.num-retries' = '20', 'write.distribution-mode' = 'none')")

    def append(first):
        df = rows(spark, 50, 1).selectExpr(f"id + {first} as id", "s", "k")
        df.sortWithinPartitions("k").writeTo(table).append()

    errors = concurrently(append)
    n = spark.table(table).count()
    spark.sql(f"DELETE FROM {table} WHERE k = 1")
    spark.sql(MERGE.format(table, 10_000, 10_100))
    for call in ("rewrite_data_files(table => 'ns.t')",
                 "expire_snapshots(table => 'ns.t', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
                 "remove_orphan_files(table => 'ns.t', older_than => TIMESTAMP '2020-01-01 00:00:00')"):
        spark.sql(f"CALL {catalog}.system.{call}").collect()
    result = errors, n, digest(spark.table(table)), spark.sql(f"SELECT * FROM {table}.snapshots").count()
    spark.sql(f"DROP TABLE {table} PURGE")
    return result


@check
def many_small_files(spark, root):
    rows(spark, 3000, 300).select("id", "s").write.json(f"{root}/small")
    return digest(spark.read.schema("id long, s string").json(f"{root}/small")), len(Files(spark, root).tree("small"))


# ---------------------------------------------------------------- checks of what only a cluster has


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
    return spawn([sys.executable, __file__, "--child", name, root, str(work), cluster.uri, jars],
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


# ---------------------------------------------------------------- the cluster, sessions, and how checks are run


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
