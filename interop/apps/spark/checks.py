"""Checks that give the same on the local disk and on the cluster."""

import json
import pathlib
import random
import shutil
import tempfile
import threading
import time

from common import CHECKS, Files, check, digest, refused, rows, short

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


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
