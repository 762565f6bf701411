"""Tables of pandas and pyarrow through fsspec, and through libhdfs's names."""

import os
import subprocess
import sys

import numpy
import pandas
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest


@pytest.fixture
def table():
    numbers = numpy.random.default_rng(5)
    rows = 300_000
    return pandas.DataFrame(
        {"a": numpy.arange(rows), "b": numbers.random(rows), "c": numbers.integers(0, 9, rows)}
    )


def test_parquet_of_pandas(fs, uri, folder, table):
    url = f"cairn://{uri.removeprefix('hdfs://')}{folder}/table.parquet"
    options = {"user": fs.client.user}
    table.to_parquet(url, storage_options=options)
    assert pandas.read_parquet(url, storage_options=options).equals(table)
    some = pandas.read_parquet(url, columns=["b"], filters=[("a", "<", 10)], storage_options=options)
    assert len(some) == 10


def test_feather_of_pandas(fs, uri, folder, table):
    url = f"cairn://{uri.removeprefix('hdfs://')}{folder}/table.feather"
    table.to_feather(url, storage_options={"user": fs.client.user})
    assert pandas.read_feather(url, storage_options={"user": fs.client.user}).equals(table)


def test_datasets_of_pyarrow(fs, folder, table):
    path = f"{folder}/dataset"
    whole = pyarrow.Table.from_pandas(table)
    pyarrow.parquet.write_to_dataset(whole, path, partition_cols=["c"], filesystem=fs)
    dataset = pyarrow.dataset.dataset(path, filesystem=fs, partitioning="hive")
    assert dataset.count_rows() == len(table)
    found = dataset.to_table(filter=pyarrow.dataset.field("a") == 77).to_pydict()
    assert found["b"] == [table["b"][77]]


#: Run by a Python of its own: pyarrow looks for libhdfs once.
LIBHDFS = """
import sys, pyarrow, pyarrow.parquet
from pyarrow import fs
host, port = sys.argv[1].removeprefix("hdfs://").split(":")
hdfs = fs.HadoopFileSystem(host, int(port), user=sys.argv[3])
folder = sys.argv[2] + "/arrow"
table = pyarrow.table({"a": list(range(500_000))})
hdfs.create_dir(folder)
pyarrow.parquet.write_table(table, folder + "/t.parquet", filesystem=hdfs)
assert pyarrow.parquet.read_table(folder + "/t.parquet", filesystem=hdfs).equals(table)
hdfs.copy_file(folder + "/t.parquet", folder + "/u.parquet")
hdfs.move(folder + "/u.parquet", folder + "/v.parquet")
names = [found.base_name for found in hdfs.get_file_info(fs.FileSelector(folder))]
assert sorted(names) == ["t.parquet", "v.parquet"], names
hdfs.delete_dir(folder)
assert hdfs.get_file_info(folder).type == fs.FileType.NotFound
"""


def test_pyarrows_own_hdfs_loads_our_library(fs, uri, folder, tmp_path):
    library = os.environ.get("CAIRN_LIBHDFS")
    if not library:
        pytest.skip("CAIRN_LIBHDFS names no library")
    # pyarrow looks for a Java machine first, and needs nothing of it.
    for name in ("libhdfs.so", "libjvm.so"):
        os.symlink(library, tmp_path / name)
    env = {**os.environ, "ARROW_LIBHDFS_DIR": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, "-c", LIBHDFS, uri, folder, fs.client.user]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
