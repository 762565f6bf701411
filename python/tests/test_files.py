"""Files and names, on replicated and erasure coded folders."""

import array
import contextlib
import errno
import gc
import io
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import fsspec
import numpy
import pytest
from cairn_fs import CairnFileSystem
from fsspec import AbstractFileSystem

DATA = random.Random(7).randbytes(5_000_011)


def is_ec(path):
    return path.startswith("/python/ec")


@pytest.fixture
def big(fs, folder):
    path = f"{folder}/big"
    with fs.open(path, "wb") as file:
        for start in range(0, len(DATA), 700_001):
            assert file.write(DATA[start : start + 700_001]) > 0
        assert file.tell() == len(DATA)
    return path


def test_what_is_written_is_read(fs, big):
    assert fs.info(big)["size"] == len(DATA) == fs.size(big)
    assert fs.info(big)["ec_policy"] == ("RS-3-2-1024k" if is_ec(big) else None)
    assert fs.cat_file(big) == DATA
    with fs.open(big) as file:
        assert (file.size, file.path, file.readable(), file.seekable()) == (len(DATA), big, True, True)
        assert file.read() == DATA
        assert file.read(10) == b""
    with fs.open(big) as file:
        pieces = list(iter(lambda: file.read(333_333), b""))
        assert b"".join(pieces) == DATA


def test_the_files_of_a_directory_are_read(fs, big, folder):
    few = {f"{folder}/f{at:02}": DATA[at : at + 1000 * at] for at in range(40)}
    for path, data in few.items():
        fs.pipe_file(path, data)
    fs.mkdir(f"{folder}/below")
    found = list(fs.cat_directory(folder))
    assert found == [(big, DATA), *few.items()]
    with pytest.raises(FileNotFoundError):
        list(fs.cat_directory(f"{folder}/none"))


def test_reads_jump(fs, big):
    places = random.Random(3)
    with fs.open(big, block_size=4096) as file:
        for _ in range(100):
            start, count = places.randrange(len(DATA)), places.choice([1, 100, 5000, 200_000])
            assert file.seek(start) == start
            assert file.read(count) == DATA[start : start + count]
            assert file.tell() == min(start + count, len(DATA))
        assert file.seek(-5, io.SEEK_END) == len(DATA) - 5
        assert file.read() == DATA[-5:]
        with pytest.raises(ValueError):
            file.seek(-1)
        assert file.read_at(len(DATA) - 3, 10) == DATA[-3:]
    with pytest.raises(ValueError):
        file.read_at(0, 1)
    with pytest.raises(ValueError):
        file.read(1)


def test_ranges(fs, big):
    assert fs.cat_file(big, 10, 20) == DATA[10:20]
    assert fs.cat_file(big, -10) == DATA[-10:]
    assert fs.cat_file(big, None, -10) == DATA[:-10]
    assert fs.cat_file(big, 20, 10) == b""
    starts = list(range(0, len(DATA), 101_003))
    ends = [start + 5000 for start in starts]
    read = fs.cat_ranges([big] * len(starts), starts, ends)
    assert read == [DATA[start:end] for start, end in zip(starts, ends)]
    odd = [(50, 90), (0, 60), (70, 70), (90, 50), (len(DATA) - 5, len(DATA) + 5), (-3, None), (60, 65)]
    starts, ends = map(list, zip(*odd))
    wanted = [DATA[50:90], DATA[:60], b"", b"", DATA[-5:], DATA[-3:], DATA[60:65]]
    for gap in (None, 0, 1 << 20):
        assert fs.cat_ranges([big] * len(odd), starts, ends, max_gap=gap) == wanted
    mixed = fs.cat_ranges([big, big + "-none"], [0, 0], [5, 5])
    assert mixed[0] == DATA[:5] and isinstance(mixed[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([big + "-none"], 0, 5, on_error="raise")
    with pytest.raises(ValueError):
        fs.cat_ranges([big], [0, 1], [5])


def test_threads_share_files(fs, big):
    with fs.open(big) as file, ThreadPoolExecutor(8) as pool:
        starts = range(0, len(DATA), 250_007)
        read = pool.map(lambda start: file.read_at(start, 30_000), starts)
        assert list(read) == [DATA[start : start + 30_000] for start in starts]


def test_threads_share_a_place(fs, big):
    reader = fs.client.open(big)
    for _ in range(20):
        reader.seek(0)
        with ThreadPoolExecutor(8) as pool:
            parts = list(pool.map(lambda _: reader.read(len(DATA) // 4 + 1), range(8)))
        assert sum(map(len, parts)) == len(DATA)
        assert reader.tell() == len(DATA)


def test_other_threads_run_meanwhile(fs, big):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.0005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    reader = fs.client.open(big)
    for _ in range(20):
        reader.seek(0)
        assert len(reader.read()) == len(DATA)
    stop.set()
    thread.join()
    assert ticks


def test_text_lines_and_compression(fs, folder):
    lines = [f"line {number} ü\n" for number in range(3000)]
    with fs.open(f"{folder}/text", "w", encoding="utf-8") as file:
        file.writelines(lines)
    with fs.open(f"{folder}/text", "r", encoding="utf-8") as file:
        assert list(file) == lines
    with fs.open(f"{folder}/text.gz", "wb", compression="gzip") as file:
        file.write(DATA[:100_000])
    with fs.open(f"{folder}/text.gz", "rb", compression="infer") as file:
        assert file.read() == DATA[:100_000]


def test_buffers_of_any_kind_are_written(fs, folder):
    with fs.open(f"{folder}/kinds", "wb") as file:
        assert file.write(b"bytes") == 5
        assert file.write(bytearray(b"array")) == 5
        assert file.write(memoryview(b"0123456789")[2:6]) == 4
        assert file.write(memoryview(b"0123456789")[::3]) == 4
        assert file.write(array.array("H", [0x6261, 0x6463])) == 4
        assert file.write(array.array("d")) == 0
        assert file.write(numpy.array([[1, 2], [3, 4]], dtype="<i4").T) == 16
        with pytest.raises((TypeError, BufferError)):
            file.write("text")
    numbers = b"".join(number.to_bytes(4, "little") for number in (1, 3, 2, 4))
    assert fs.cat_file(f"{folder}/kinds") == b"bytesarray23450369abcd" + numbers


def test_append(fs, folder):
    path = f"{folder}/log"
    with fs.open(path, "ab") as file:
        file.write(b"one")
    if is_ec(folder):
        with pytest.raises(OSError) as refused:
            fs.open(path, "ab")
        assert refused.value.errno == errno.ENOTSUP
        return
    with fs.open(path, "ab") as file:
        assert file.tell() == 3
        file.write(b"two")
        file.sync()
        assert fs.cat_file(path) == b"onetwo"
        file.sync(durable=True)
    assert fs.client.truncate(path, 0)
    assert fs.size(path) == 0


def test_an_erasure_coded_file_does_not_pretend_to_be_synced(fs, folder):
    if is_ec(folder):
        with fs.open(f"{folder}/f", "wb") as file:
            file.write(b"x")
            with pytest.raises(OSError) as refused:
                file.sync()
            assert refused.value.errno == errno.ENOTSUP
        assert fs.cat_file(f"{folder}/f") == b"x"


def test_names(fs, folder):
    fs.mkdir(f"{folder}/d/e")
    with pytest.raises(FileExistsError):
        fs.mkdir(f"{folder}/d")
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{folder}/d")
    fs.makedirs(f"{folder}/d", exist_ok=True)
    with pytest.raises(FileNotFoundError):
        fs.mkdir(f"{folder}/none/x", create_parents=False)
    for name in ("a", "d/b", "d/e/c"):
        fs.pipe_file(f"{folder}/{name}", name.encode())
    here = [f"{folder}/{name}" for name in ("a", "d/b", "d/e/c")]
    assert set(here) <= set(fs.find(folder))
    assert fs.ls(f"{folder}/d", detail=False) == [f"{folder}/d/b", f"{folder}/d/e"]
    assert fs.glob(f"{folder}/d/**/c") == [f"{folder}/d/e/c"]
    assert [top for top, _, _ in fs.walk(f"{folder}/d")] == [f"{folder}/d", f"{folder}/d/e"]
    assert fs.du(f"{folder}/d") == len("d/b") + len("d/e/c")
    assert fs.isdir(f"{folder}/d") and fs.isfile(here[0]) and not fs.exists(f"{folder}/none")
    fs.mv(here[0], f"{folder}/d/")
    assert fs.cat_file(f"{folder}/d/a") == b"a"
    with pytest.raises(IsADirectoryError):
        fs.mv(f"{folder}/d", f"{folder}/m")
    fs.mv(f"{folder}/d", f"{folder}/m", recursive=True)
    assert fs.cat_file(f"{folder}/m/e/c") == b"d/e/c"
    fs.cp(f"{folder}/m", f"{folder}/copy", recursive=True)
    assert fs.cat(fs.find(f"{folder}/copy"))[f"{folder}/copy/e/c"] == b"d/e/c"
    with pytest.raises(OSError):
        fs.rm(f"{folder}/m")
    with pytest.raises(NotADirectoryError):
        fs.rmdir(f"{folder}/m/a")
    fs.rm([f"{folder}/m", f"{folder}/copy"], recursive=True)
    assert not fs.exists(f"{folder}/m")
    for call in (fs.rm, fs.rm_file, fs.info, fs.ls, fs.open, fs.cat_file, fs.modified):
        with pytest.raises(FileNotFoundError):
            call(f"{folder}/none")


def test_attributes(fs, folder):
    path = f"{folder}/f"
    before = datetime.now(tz=timezone.utc) - timedelta(minutes=1)
    fs.touch(path)
    assert before < fs.modified(path) < before + timedelta(minutes=2)
    fs.chmod(path, 0o600)
    assert fs.info(path)["mode"] == 0o600
    fs.pipe_file(path, b"123")
    key, checksum = fs.ukey(path), fs.checksum(path)
    fs.touch(path, truncate=False)
    assert fs.cat_file(path) == b"123" and fs.checksum(path) == checksum
    fs.pipe_file(path, b"124")
    assert fs.ukey(path) != key and fs.checksum(path) != checksum
    fs.client.utime(path, modified_ms=5000)
    assert fs.modified(path) == datetime.fromtimestamp(5, tz=timezone.utc)
    with pytest.raises(IsADirectoryError):
        fs.checksum(folder)
    assert fs.client.stats()["capacity"] > 0
    assert all(block["hosts"] for block in fs.client.blocks(path))


def test_a_user_without_rights(fs, uri, folder):
    fs.pipe_file(f"{folder}/secret", b"x")
    fs.pipe_file(f"{folder}/closed/x", b"x")
    fs.chmod(f"{folder}/secret", 0o600)
    ann = fsspec.filesystem("cairn", **CairnFileSystem._get_kwargs_from_urls(uri), user="ann")
    with pytest.raises(PermissionError):
        ann.cat_file(f"{folder}/secret")
    with pytest.raises(PermissionError):
        ann.pipe_file(f"{folder}/other", b"x")
    # Nobody says that what cannot be seen is not there.
    fs.chmod(f"{folder}/closed", 0o700)
    for ask in (ann.exists, ann.isfile, ann.isdir):
        with pytest.raises(PermissionError):
            ask(f"{folder}/closed/x")
        assert not ask(f"{folder}/nothing") and not ask(f"{folder}/secret/below")
    for ask in (ann.find, ann.du, lambda path: ann.glob(f"{path}/**"), lambda path: list(ann.walk(path))):
        with pytest.raises(PermissionError):
            ask(folder)
    names = ["closed"], ["secret"]
    assert list(ann.walk(folder, on_error="omit")) == [(folder, *names)]
    seen = []
    assert list(ann.walk(folder, on_error=seen.append, topdown=False)) == [(folder, *names)]
    assert [type(error) for error in seen] == [PermissionError]
    assert ann.find(f"{folder}/nothing") == [] == ann.glob(f"{folder}/nothing/*")
    with pytest.raises(FileNotFoundError):
        list(ann.walk(f"{folder}/nothing", on_error="raise"))


def test_walks_are_those_of_fsspec(fs, folder):
    for name in ("a/b/c", "a/d", "e"):
        fs.pipe_file(f"{folder}/{name}", b"x")
    for options in ({}, {"topdown": False}, {"maxdepth": 1}, {"maxdepth": 2}, {"detail": True}):
        for path in (folder, f"{folder}/e"):
            wanted = AbstractFileSystem.walk(fs, path, **options)
            assert list(fs.walk(path, **options)) == list(wanted)
    seen = []
    for path, dirs, _ in fs.walk(folder):
        seen.append(path)
        dirs.clear()
    assert seen == [folder]


def test_lists_are_removed_with_what_is_below_each_other(fs, folder):
    def make():
        for name in ("a/b/c", "a/d", "ab", "e"):
            fs.pipe_file(f"{folder}/{name}", b"x")

    make()
    fs.rm([f"{folder}/a", f"{folder}/a/b/c", f"{folder}/a/d", f"{folder}/ab"], recursive=True)
    assert fs.ls(folder, detail=False) == [f"{folder}/e"]
    make()
    fs.rm(f"{folder}/**", recursive=True)
    assert fs.find(folder, withdirs=True) in ([], [folder])
    fs.pipe_file(f"{folder}/a/x", b"x")
    fs.rm([f"{folder}/a", f"{folder}/a/x"])
    assert not fs.exists(f"{folder}/a")


def test_a_child_of_fork_leaves_its_parent_alone(fs, big):
    mine = fsspec.filesystem("cairn", skip_instance_cache=True, **fs.storage_options)
    file = mine.open(big)
    out = mine.open(f"{big}-2", "wb")
    out.write(DATA)
    assert file.read(10) == DATA[:10]
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            mine.client.info("/")
        del file, mine, out
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    start = time.monotonic()
    assert file.read() == DATA[10:]
    out.write(DATA)
    out.close()
    assert mine.size(f"{big}-2") == 2 * len(DATA)
    # What was lost to the child was noticed when DataNodes gave up, after a minute.
    assert time.monotonic() - start < 40


def test_transactions(fs, folder):
    with fs.transaction:
        with fs.open(f"{folder}/late", "wb") as file:
            file.write(b"x")
        assert not fs.exists(f"{folder}/late")
    assert fs.cat_file(f"{folder}/late") == b"x"
    with pytest.raises(RuntimeError), fs.transaction:
        with fs.open(f"{folder}/never", "wb") as file:
            file.write(b"x")
        raise RuntimeError
    left = fs.ls(folder, detail=False)
    assert f"{folder}/never" not in left and not any("_COPYING_" in name for name in left)


def test_what_could_not_be_written_is_not_committed(fs, folder):
    class Failing:
        def close(self):
            raise OSError(errno.EIO, "no DataNodes")

    for end in ("commit", "discard"):
        file = fs.open(f"{folder}/half", "wb", autocommit=False)
        file.write(b"x")
        file._writer.close()
        file._writer = Failing()
        with pytest.raises(OSError):
            file.close()
        if end == "commit":
            with pytest.raises(OSError):
                file.commit()
        file.discard()
        assert fs.ls(folder) == []


def test_urls(fs, uri, folder):
    authority = uri.removeprefix("hdfs://")
    url = f"cairn://{authority}{folder}/by-url"
    with fsspec.open(url, "wb", user=fs.client.user) as file:
        file.write(b"x")
    found, path = fsspec.url_to_fs(url)
    assert isinstance(found, CairnFileSystem) and path == f"{folder}/by-url"
    assert fs.unstrip_protocol(path) == url
    assert fs._strip_protocol([url, f"hdfs://{authority}/", "/a/"]) == [path, "/", "/a"]
    wanted = {"host": "nn", "port": 9, "user": "bob"}
    assert fs._get_kwargs_from_urls("cairn://bob@nn:9/x") == wanted
    program = (
        "import cairn_fs, fsspec, sys\n"
        "cairn_fs.register_hdfs()\n"
        "print(fsspec.open(sys.argv[1], user=sys.argv[2]).open().read())\n"
    )
    command = [sys.executable, "-c", program, f"{uri}{folder}/by-url", fs.client.user]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"b'x'\n"
    with pytest.raises(ValueError):
        CairnFileSystem(host="nn", options={"dfs.blocksize": "many"})


def test_pickles(fs, big):
    again = pickle.loads(pickle.dumps(fs))
    assert again.cat_file(big, 0, 5) == DATA[:5]
    with fs.open(big, block_size=4096) as file:
        file.seek(1000)
        with pickle.loads(pickle.dumps(file)) as again:
            assert again.read() == DATA[1000:]


def test_options_of_new_files(fs, folder):
    with fs.open(f"{folder}/small-blocks", "wb", block_size=1 << 20, replicate=True, replication=2) as file:
        file.write(DATA[: 3 << 20])
    info = fs.info(f"{folder}/small-blocks")
    assert (info["block_size"], info["replication"], info["ec_policy"]) == (1 << 20, 2, None)
    assert len(fs.client.blocks(f"{folder}/small-blocks")) == 3
    with fs.open(f"{folder}/coded", "wb", policy="RS-3-2-1024k") as file:
        file.write(b"x")
    assert fs.info(f"{folder}/coded")["ec_policy"] == "RS-3-2-1024k"


def test_put_and_get(fs, folder, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(DATA)
    fs.put(str(tmp_path / "in"), f"{folder}/put", recursive=True)
    fs.get(f"{folder}/put", str(tmp_path / "out"), recursive=True)
    assert (tmp_path / "out" / "a").read_bytes() == DATA
