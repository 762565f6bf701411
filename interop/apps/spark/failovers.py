"""Spark on three NameNodes of which the one that leads is killed again and again while jobs write and read."""

import argparse
import os
import pathlib
import sys
import threading
import time
import xml.etree.ElementTree

from pyspark.sql import SparkSession

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parents[1]), str(here.parents[1] / "ha")]
from cluster import Checks  # noqa: E402
from common import digest, expect, rows  # noqa: E402
from ha import Three, tell  # noqa: E402

DATANODES = 4


def session(three):
    site = xml.etree.ElementTree.parse(f"{three.conf}/hdfs-site.xml").getroot()
    keys = {p.findtext("name"): p.findtext("value") for p in site.iter("property")}
    b = SparkSession.builder.master("local[2]").appName("failovers").config("spark.ui.enabled", "false")
    b = b.config("spark.ui.showConsoleProgress", "false")
    b = b.config("spark.driver.memory", "900m").config("spark.sql.shuffle.partitions", "4")
    b = b.config("spark.sql.warehouse.dir", f"{three.folder}/warehouse")
    # No task may fail: nothing is tried again.
    b = b.config("spark.task.maxFailures", "1")
    for key, value in keys.items():
        b = b.config(f"spark.hadoop.{key}", value)
    spark = b.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def fail_over(three, spark, failovers):
    waits, jobs = [], 0
    killer = threading.Thread(target=lambda: waits.extend(three.kill_leaders(failovers, 4)))
    killer.start()
    wanted, longest = {}, 0
    # One more when all is over.
    is_last = False
    while not is_last:
        is_last = not killer.is_alive()
        df = rows(spark, 20_000 + jobs)
        path = f"hdfs://ns/jobs/{jobs}"
        began = time.monotonic()
        df.write.parquet(path)
        df.write.mode("append").parquet(path)
        longest = max(longest, time.monotonic() - began)
        wanted[path] = digest(df.union(df))
        expect(path, digest(spark.read.parquet(path)), wanted[path])
        jobs += 1
    killer.join()
    expect("leaders that were killed", len(waits), failovers)
    for path, rows_of in wanted.items():
        expect(f"{path} in the end", digest(spark.read.parquet(path)), rows_of)
    print(f"        {jobs} tables written, added to and read; the longest took {longest:.1f} s to write", flush=True)
    tell(waits)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--failovers", type=int, default=10)
    args = parser.parse_args()
    three = Three(os.path.abspath(args.cairn), str(here.parent / "target" / "failovers"), None)
    checks = Checks()
    try:
        three.until_all_vote()
        three.start_datanodes(DATANODES)
        spark = session(three)
        checks.check(f"no task of Spark fails through {args.failovers} failovers, and every row is there",
                     lambda: fail_over(three, spark, args.failovers))
        spark.stop()
        checks.check("no block is damaged or missing", three.until_healthy)
    finally:
        three.stop()
    sys.exit(1 if checks.failed else 0)


main()
