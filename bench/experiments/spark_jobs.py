"""What the experiments have Spark do. Run by `spark.py` as `spark_jobs.py FOLDER THREADS`: a job a line on standard input,
`{"job": NAME, "words": {...}}`, and a line back: seconds, processor seconds of Spark's JVM, the job's answer, and its
stages, or an error."""

import datetime
import decimal
import json
import os
import pathlib
import sys
import time

from pyspark.sql import SparkSession, functions

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from sides import cpu_seconds  # noqa: E402

LOG = """
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c: %m%n
"""
JOBS = {}


def job(f):
    JOBS[f.__name__] = f
    return f


def session(folder, threads):
    """Spark on this machine, with its threads for executors; it writes events, of which stages are read."""
    (folder / "log.properties").write_text(LOG)
    (folder / "events").mkdir()
    keys = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{folder}/log.properties "
                                         "-Djava.net.preferIPv4Stack=true",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * threads),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    builder = SparkSession.builder.master(f"local[{threads}]").appName("experiment")
    for key, value in keys.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Stages:
    """What Spark's events say of the stages that ended since it was asked last."""

    def __init__(self, spark, folder):
        self.bus = spark.sparkContext._jsc.sc().listenerBus()
        self.folder, self.at = folder, 0

    def new(self):
        self.bus.waitUntilEmpty()
        (log,) = self.folder.iterdir()
        with open(log) as file:
            file.seek(self.at)
            text = file.read()
        # The last line may not be whole.
        whole = text.rfind("\n") + 1
        self.at += len(text[:whole].encode())
        events = (json.loads(line) for line in text[:whole].splitlines())
        return [stage(event["Stage Info"]) for event in events if event["Event"] == "SparkListenerStageCompleted"]


def stage(info):
    sums = {each["Name"].removeprefix("internal.metrics."): each["Value"] for each in info["Accumulables"]
            if each["Name"].startswith("internal.metrics.")}
    return {"from": info["Submission Time"] / 1000, "to": info["Completion Time"] / 1000,
            "read": sums.get("input.bytesRead", 0), "written": sums.get("output.bytesWritten", 0)}


def table(spark, folder, name, form, schema):
    """A table in a form: text has a bar between columns."""
    reader = spark.read.schema(schema)
    if form == "text":
        return reader.options(sep="|", dateFormat="yyyy-MM-dd").csv(f"{folder}/{name}")
    return reader.format(form).load(f"{folder}/{name}")


def tables(spark, source):
    """What is generated: names of tables, and how they are read."""
    return {path.stem: spark.read.parquet(f"file://{path}") for path in sorted(pathlib.Path(source).glob("*.parquet"))}


@job
def load(spark, source, to, form):
    """Writes all tables in a form."""
    for name, frame in tables(spark, source).items():
        writer = frame.write.mode("overwrite")
        if form == "text":
            writer.options(sep="|", dateFormat="yyyy-MM-dd").csv(f"{to}/{name}")
        else:
            writer.format(form).save(f"{to}/{name}")


@job
def views(spark, source, folder, form):
    """Has queries read the tables of a folder."""
    for name, frame in tables(spark, source).items():
        table(spark, folder, name, form, frame.schema).createOrReplaceTempView(name)


@job
def query(spark, sql):
    """All rows of a query."""
    return [[plain(value) for value in row] for row in spark.sql(sql).collect()]


def plain(value):
    """A value of a row for JSON."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    return str(value) if isinstance(value, (datetime.date, datetime.datetime)) else value


# A line has a random key and words, 100 bytes with its end.
LINE_LEN = 100
KEY = "substring(value, 1, 9)"
LINE = "concat_ws(' ', substring(md5(cast(id as string)), 1, 9), {})".format(
    ", ".join(f"concat('word', lpad(pmod(xxhash64(id, {word}), {{words}}), 5, '0'))" for word in range(9)))


def parts(spark, count):
    """Has each shuffle end in so many parts, no matter how small they are."""
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", str(count))


def text_options(block):
    return {"dfs.blocksize": str(block)} if block else {}


@job
def generate(spark, to, files, rows, words, block=0):
    """Writes files of lines with `words` different words."""
    lines = spark.range(0, files * rows, 1, files).selectExpr(f"{LINE.format(words=words)} as value")
    lines.write.options(**text_options(block)).text(to)


@job
def sort(spark, source, to, files, block=0):
    """Sorts all lines by their keys, into files one after the other."""
    parts(spark, files)
    lines = spark.read.text(source).selectExpr("value", f"{KEY} as key")
    lines.repartitionByRange(files, "key").sortWithinPartitions("key").select("value") \
        .write.options(**text_options(block)).text(to)


@job
def count(spark, source, to, files):
    """Counts words."""
    parts(spark, files)
    words = spark.read.text(source).selectExpr("explode(split(substring(value, 11), ' ')) as word")
    words.groupBy("word").count().selectExpr("concat_ws(' ', word, count) as value").write.text(to)


@job
def digest(spark, folder):
    """Rows, and a sum over them that does not depend on their order."""
    row = spark.read.text(folder).selectExpr("count(1)", "sum(cast(xxhash64(value) as decimal(38, 0)))").collect()[0]
    return [row[0], str(row[1])]


@job
def is_sorted(spark, folder):
    """Whether the least and the largest keys of files are in the order of the files' names."""
    keys = spark.read.text(folder).selectExpr("input_file_name() as name", f"{KEY} as key").groupBy("name")
    ends = sorted(map(tuple, keys.agg(functions.min("key"), functions.max("key")).collect()))
    return all(most <= least for (_, _, most), (_, least, _) in zip(ends, ends[1:]))


@job
def total_count(spark, folder):
    """How many words were counted."""
    return spark.read.text(folder).selectExpr("sum(cast(split(value, ' ')[1] as bigint))").collect()[0][0]


# Reads are as long, differ so much from where they come from, and so are cut in as many seeds, one of which is whole.
READ, DIFFER = 36, 2
SEED = READ // (DIFFER + 1)
# Bases in a line of the reference, beside those that the next one begins with.
ACROSS = 1000
BASE = "substring('ACGT', 1 + pmod(xxhash64({}), 4), 1)"
STARTS = "pmod(xxhash64(id, 7), {bases})"


@job
def generate_reads(spark, to, bases, reads, files):
    """Writes a reference of random bases, and reads of it with some bases changed."""
    base = BASE.format("p")
    lines = spark.range(0, bases // ACROSS, 1, files).selectExpr(
        f"concat(id * {ACROSS}, ' ', array_join(transform(sequence(id * {ACROSS}, (id + 1) * {ACROSS} + {READ - 2}), "
        f"p -> {base}), '')) as value")
    lines.write.text(f"{to}/reference")
    changed = " or ".join(f"p - start = pmod(xxhash64(id, {turn}), {READ})" for turn in range(DIFFER))
    spark.range(0, reads, 1, files).selectExpr("id", f"{STARTS.format(bases=bases)} as start").selectExpr(
        f"concat(id, ' ', array_join(transform(sequence(start, start + {READ - 1}), "
        f"p -> if({changed}, translate({base}, 'ACGT', 'CGTA'), {base})), '')) as value").write.text(f"{to}/reads")


@job
def map_reads(spark, source, to, files):
    """Finds where reads come from: those that share a seed with a place of the reference are compared with it."""
    parts(spark, files)
    seeds = ", ".join(f"substring(bases, {turn * SEED + 1}, {SEED})" for turn in range(DIFFER + 1))
    places = spark.read.text(f"{source}/reference").selectExpr("split(value, ' ') as w").selectExpr(
        "cast(w[0] as bigint) as first", "w[1] as line").selectExpr(
        "first", "line", f"explode(sequence(0, {ACROSS - 1})) as at").selectExpr(
        "first + at as place", f"substring(line, at + 1, {READ}) as bases")
    places = places.selectExpr("place", "bases", f"posexplode(array({seeds})) as (turn, seed)")
    reads = spark.read.text(f"{source}/reads").selectExpr("split(value, ' ') as w").selectExpr(
        "cast(w[0] as bigint) as read", "w[1] as bases")
    reads = reads.selectExpr("read", "bases as wanted", f"posexplode(array({seeds})) as (turn, seed)")
    # Not by sending the smaller side to all tasks: a job of MapReduce's shuffles both.
    found = places.join(reads.hint("shuffle_merge"), ["turn", "seed"]).selectExpr(
        "read", "place", f"levenshtein(bases, wanted, {DIFFER}) as differ")
    found.where("differ >= 0").distinct().selectExpr("concat_ws(' ', read, place, differ) as value").write.text(to)


@job
def found(spark, folder, bases):
    """How many reads were found where they come from."""
    rows = spark.read.text(folder).selectExpr("split(value, ' ') as w").selectExpr(
        "cast(w[0] as bigint) as id", "cast(w[1] as bigint) as place")
    return rows.where(f"place = {STARTS.format(bases=bases)}").selectExpr("count(distinct id)").collect()[0][0]


@job
def write_bytes(spark, to, files, mib):
    """Writes files of lines of 1 MiB."""
    lines = spark.range(0, files, 1, files).selectExpr(f"explode(sequence(1, {mib})) as line")
    lines.selectExpr(f"repeat('x', {(1 << 20) - 1}) as value").write.text(to)


@job
def read_bytes(spark, folder, executors):
    """Bytes of lines, read by so many tasks."""
    return spark.read.text(folder).coalesce(executors).selectExpr("sum(octet_length(value))").collect()[0][0]


KEPT = {}


@job
def keep(spark, rows, files):
    """Keeps lines in memory."""
    KEPT["lines"] = spark.range(0, rows, 1, files).selectExpr(f"{LINE.format(words=1000)} as value").persist()
    return KEPT["lines"].count()


@job
def write_kept(spark, to, compressor):
    """Writes the lines in memory, compressed."""
    KEPT["lines"].write.option("compression", compressor).text(to)


def main():
    folder, threads = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    # Java writes to standard output what it likes.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = session(folder, threads)
    stages = Stages(spark, folder / "events")
    pid = spark.sparkContext._gateway.proc.pid
    for line in sys.stdin:
        asked = json.loads(line)
        begin, used = time.monotonic(), cpu_seconds(pid)
        try:
            answer = JOBS[asked["job"]](spark, **asked["words"])
            told = {"seconds": time.monotonic() - begin, "cpu": cpu_seconds(pid) - used, "answer": answer,
                    "stages": stages.new()}
        except Exception as error:
            told = {"error": str(error)[:2000]}
        answers.write(json.dumps(told) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main()
