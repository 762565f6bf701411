"""fsspec and opendal against the WebHDFS server that WEBHDFS_URL names; run by interop/hadoop's WebHdfsTests."""

import os
import posixpath
import uuid

import fsspec.tests.abstract as abstract
import opendal
import pytest
from fsspec.implementations.webhdfs import WebHDFS

URL = os.environ["WEBHDFS_URL"]
HOST, PORT = URL.removeprefix("http://").split(":")
USER = os.environ["WEBHDFS_USER"]


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture(scope="class")
    def fs(self):
        return WebHDFS(HOST, port=int(PORT), user=USER, skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self, fs):
        path = "/fsspec/" + uuid.uuid4().hex
        fs.makedirs(path, exist_ok=True)
        yield path
        fs.rm(path, recursive=True)

    @pytest.fixture
    def fs_join(self):
        return posixpath.join

    @pytest.fixture
    def fs_sanitize_path(self):
        return lambda path: path

    def supports_empty_directories(self):
        return True


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestFsspec(Fixtures):
    @pytest.mark.parametrize("name", ["plain", "a b", "a+b", "a%b", "äö漢", "a;b", "a&b=c"])
    @pytest.mark.parametrize("length", [0, 1, 5 << 20])
    def test_bytes_and_names(self, fs, fs_path, name, length):
        path = posixpath.join(fs_path, name)
        data = os.urandom(length)
        with fs.open(path, "wb") as f:
            f.write(data)
        assert fs.info(path)["size"] == length
        assert fs.cat_file(path) == data
        assert fs.cat_file(path, start=length // 3, end=length // 2) == data[length // 3 : length // 2]
        assert [posixpath.basename(found) for found in fs.ls(fs_path, detail=False)] == [name]
        fs.mv(path, path + "2")
        assert not fs.exists(path) and fs.exists(path + "2")

    def test_attributes(self, fs, fs_path):
        path = posixpath.join(fs_path, "f")
        fs.pipe_file(path, b"12345")
        fs.chmod(path, "600")
        assert fs.info(path)["permission"] == "600"
        fs.set_replication(path, 2)
        assert fs.info(path)["replication"] == 2
        assert fs.content_summary(path)["length"] == 5
        assert fs.ukey(path)["length"] == 28
        assert fs.home_directory() == "/user/" + USER


@pytest.fixture
def op():
    return opendal.Operator("webhdfs", endpoint=URL, root="/opendal", user_name=USER)


def test_opendal_appends(op):
    op.write("log", b"one")
    for _ in range(5):
        op.write("log", b"two", append=True)
    assert op.read("log") == b"one" + 5 * b"two"


@pytest.mark.parametrize("name", ["plain", "a b", "a+b", "a%b", "äö漢", "a;b"])
@pytest.mark.parametrize("length", [0, 1, 3 << 20])
def test_opendal_bytes_and_names(op, name, length):
    data = os.urandom(length)
    op.write(name, data)
    assert op.stat(name).content_length == length
    assert op.read(name) == data
    assert name in [entry.path for entry in op.list("/")]
    op.delete(name)
    assert not op.exists(name)


def test_opendal_directories(op):
    op.create_dir("d/e/")
    op.write("d/e/f", b"x")
    assert op.stat("d/e/").mode.is_dir()
    assert "d/e/f" in [entry.path for entry in op.list("d/e/")]
    op.remove_all("d/")
    assert not op.exists("d/e/f")
