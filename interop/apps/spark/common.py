"""What the checks of Spark share."""

import pathlib
import re
import sys

# How benchmarks start a cluster of real processes is known there.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))

# The folders of the cluster: three copies, and erasure coded.
FOLDERS = ("copies", "coded")
POLICY = "RS-6-3-1024k"
# Nine units, and as many to spare as are killed at once.
DATANODES = 12
# Small blocks, so that files of some MiB have several block groups.
BLOCK = 2 << 20
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

CHECKS, CLUSTER_CHECKS = [], []


def check(f):
    CHECKS.append((f.__name__.replace("_", " "), f))
    return f


def cluster_check(f):
    CLUSTER_CHECKS.append((f.__name__.replace("_", " "), f))
    return f


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
