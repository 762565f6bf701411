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

from pyspark.sql import SparkSession

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
    return {"seconds": (info["Completion Time"] - info["Submission Time"]) / 1000, "tasks": info["Number of Tasks"],
            "cpu": sums.get("executorCpuTime", 0) / 1e9, "read": sums.get("input.bytesRead", 0),
            "written": sums.get("output.bytesWritten", 0), "shuffled": sums.get("shuffle.write.bytesWritten", 0),
            "fetched": sums.get("shuffle.read.localBytesRead", 0)}


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
