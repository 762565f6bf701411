"""A cluster for the tests: that of CAIRN_URI, or one of the program CAIRN_BINARY."""

import json
import os
import subprocess

import fsspec
import pytest

POLICY = "RS-3-2-1024k"


@pytest.fixture(scope="session")
def uri(tmp_path_factory):
    if "CAIRN_URI" in os.environ:
        yield os.environ["CAIRN_URI"]
        return
    data = tmp_path_factory.mktemp("cluster")
    command = [os.environ["CAIRN_BINARY"], "cluster", "--datanodes", "5", "--racks", "5"]
    command += ["--data", str(data), "-D", "cairn.durability=page-cache"]
    # The cluster ends with its standard input, whatever becomes of this process.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cluster:
        line = cluster.stdout.readline()
        assert line, "the cluster did not start"
        yield json.loads(line)["fs"]
        cluster.stdin.write(b"stop\n")
        cluster.stdin.close()
        cluster.wait(timeout=60)


@pytest.fixture(scope="session")
def cluster_fs(uri):
    user = os.environ.get("CAIRN_USER")
    host, port = uri.removeprefix("hdfs://").split(":")
    fs = fsspec.filesystem("cairn", host=host, port=int(port), user=user)
    fs.makedirs("/python/replicated", exist_ok=True)
    fs.makedirs("/python/ec", exist_ok=True)
    fs.client.enable_ec_policy(POLICY)
    fs.client.set_ec_policy("/python/ec", POLICY)
    return fs


@pytest.fixture(scope="class", params=["replicated", "ec"])
def folder(request, cluster_fs, tmp_path_factory):
    """A new folder, replicated or erasure coded."""
    path = f"/python/{request.param}/{tmp_path_factory.mktemp('x').name}"
    cluster_fs.makedirs(path)
    yield path
    cluster_fs.rm(path, recursive=True)


@pytest.fixture
def fs(cluster_fs):
    return cluster_fs
