"""The file system for fsspec."""

from __future__ import annotations

import errno
import os
from datetime import datetime, timezone
from typing import Any

import fsspec
from fsspec import AbstractFileSystem
from fsspec.utils import infer_storage_options, stringify_path, tokenize

from ._native import Client
from .files import ReadFile, WriteFile

SCHEMES = ("cairn://", "hdfs://")
#: What says that a name is not there; anything else says that nobody knows.
MISSING = (FileNotFoundError, NotADirectoryError)


class CairnFileSystem(AbstractFileSystem):
    """Files on a Cairn or HDFS cluster.

    ``host`` and ``port`` name the NameNode; without a host the configuration of the environment does
    (``HADOOP_CONF_DIR``). ``options`` sets keys of the configuration, for example ``dfs.blocksize``.
    """

    protocol = ("cairn", "hdfs")
    root_marker = "/"
    #: Bytes that a file open for reading asks for at least, when reads are small.
    blocksize = 1 << 18

    def __init__(
        self,
        host: str | None = None,
        port: int | str | None = None,
        user: str | None = None,
        options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        uri = "default"
        if host and host != "default":
            uri = f"hdfs://{host}:{port}" if port else f"hdfs://{host}"
        self.client = Client(uri, user, {key: str(value) for key, value in (options or {}).items()})

    # --- URLs ---

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = stringify_path(path)
        for scheme in SCHEMES:
            if path.startswith(scheme):
                _, slash, rest = path[len(scheme) :].partition("/")
                path = slash + rest
                break
        return "/" + path.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        found = infer_storage_options(path)
        names = {"host": "host", "port": "port", "user": "username"}
        return {name: found[key] for name, key in names.items() if found.get(key)}

    def unstrip_protocol(self, name: str) -> str:
        return f"cairn://{self.client.namenode}{self._strip_protocol(name)}"

    @property
    def fsid(self) -> str:
        return f"cairn_{self.client.namenode}"

    # --- Names ---

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        found = self.client.info(path)
        if found is None:
            raise _missing(path)
        return found

    def ls(self, path: str, detail: bool = True, **kwargs: Any):
        entries = self.client.list(self._strip_protocol(path))
        return entries if detail else sorted(entry["name"] for entry in entries)

    def exists(self, path: str, **kwargs: Any) -> bool:
        return self._type(path) is not None

    def isfile(self, path: str) -> bool:
        return self._type(path) == "file"

    def isdir(self, path: str) -> bool:
        return self._type(path) == "directory"

    def _type(self, path: str) -> str | None:
        """None if there is no such name. fsspec's own answers take any error for that."""
        try:
            return self.info(path)["type"]
        except MISSING:
            return None

    def walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: Any = None,
        detail: bool = False,
        **kwargs: Any,
    ):
        """As fsspec's, but for directories that cannot be listed: they are errors, except those that are not
        there (any more). ``on_error`` is a function that gets all errors, "raise" or "omit"."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        try:
            listing = self.ls(path, detail=True, **kwargs)
        except OSError as error:
            if callable(on_error):
                on_error(error)
            elif on_error == "raise" or on_error is None and not isinstance(error, MISSING):
                raise
            return
        below = {info["name"][len(path) :].lstrip("/"): info for info in listing}
        dirs = {name: info for name, info in below.items() if info["type"] == "directory"}
        files = {name: info for name, info in below.items() if name not in dirs}
        found = (path, dirs, files) if detail else (path, list(dirs), list(files))
        if topdown:
            yield found
        if maxdepth is None or maxdepth > 1:
            # The caller may have taken some out.
            for name in found[1]:
                deeper = None if maxdepth is None else maxdepth - 1
                place = f"{path.rstrip('/')}/{name}"
                yield from self.walk(place, deeper, topdown, on_error, detail, **kwargs)
        if not topdown:
            yield found

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        if self.client.info(path) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.client.mkdir(path, create_parents, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        path = self._strip_protocol(path)
        if not exist_ok and self.client.info(path) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.client.mkdir(path, True)

    def rm_file(self, path: str) -> None:
        self._delete(self._strip_protocol(path), recursive=False)

    _rm = rm_file

    def rmdir(self, path: str) -> None:
        path = self._strip_protocol(path)
        if self.info(path)["type"] != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        self._delete(path, recursive=False)

    def rm(self, path, recursive: bool = False, maxdepth: int | None = None) -> None:
        if maxdepth is not None:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        paths = self.expand_path(path, recursive=False)
        if recursive:
            # A tree goes with one call, so nothing below is listed, or deleted by itself.
            named = set(paths)
            paths = [one for one in paths if named.isdisjoint(_parents(one))]
        # What is in a directory goes before it.
        for one in reversed(paths):
            self._delete(one, recursive)

    def _delete(self, path: str, recursive: bool) -> None:
        if not self.client.delete(path, recursive):
            raise _missing(path)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(path1):
            self.client.mkdir(path2, True)
        else:
            self.client.copy(path1, path2)

    def mv(self, path1, path2, recursive: bool = False, maxdepth=None, **kwargs: Any) -> None:
        """Moves a file, or with ``recursive`` a directory: into ``path2`` when that is a directory or
        ends with a slash, else over it."""
        if not isinstance(path1, str) or not isinstance(path2, str) or maxdepth is not None:
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)
            return
        if any(sign in path1 for sign in "*?["):
            super().mv(path1, path2, recursive=recursive, **kwargs)
            return
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.info(source)["type"] == "directory" and not recursive:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), source)
        if path2.endswith("/") or self.isdir(target):
            target = f"{target.rstrip('/')}/{source.rsplit('/', 1)[1]}"
        if source != target:
            self.client.mkdir(self._parent(target), True)
            self.client.rename(source, target, overwrite=True)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        if truncate or self.client.info(path) is None:
            self.client.create(path, overwrite=True, **kwargs).close()
        else:
            now = datetime.now(tz=timezone.utc).timestamp()
            self.client.utime(path, modified_ms=int(now * 1000))

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    def chmod(self, path: str, mode: int) -> None:
        """Sets the permission bits."""
        self.client.chmod(self._strip_protocol(path), mode)

    def ukey(self, path: str) -> str:
        """Changes whenever the file does."""
        info = self.info(path)
        return tokenize(info["name"], info["file_id"], info["size"], info["mtime"])

    def checksum(self, path: str) -> int:
        """The number of the checksum that Hadoop's ``-checksum`` prints; equal bytes that are stored in
        the same way have the same."""
        found = self.client.checksum(self._strip_protocol(path))
        if found is None:
            path = self._strip_protocol(path)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return int.from_bytes(found[1], "big")

    # --- Bytes ---

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict | None = None,
        **kwargs: Any,
    ):
        """For writing, ``replication``, ``policy``, ``replicate`` and ``block_size`` say how the file is
        to be stored."""
        if mode == "rb":
            reader = self.client.open(path)
            return ReadFile(self, path, reader, block_size or self.blocksize)
        if mode not in ("wb", "ab", "xb"):
            raise ValueError(f"files are not opened with mode {mode}")
        names = ("replication", "policy", "replicate")
        options = {name: kwargs[name] for name in names if kwargs.get(name) is not None}
        if block_size:
            options["block_size"] = block_size
        return WriteFile(self, path, mode, autocommit, options)

    def cat_file(self, path: str, start=None, end=None, **kwargs: Any) -> bytes:
        path = self._strip_protocol(path)
        if start is None and end is None:
            return self.client.open(path).read(-1)
        [found] = self.client.read_ranges([(path, start, end)])
        if isinstance(found, Exception):
            raise found
        return found

    def cat_directory(self, path: str):
        """The names of the files in a directory and their bytes, in the order of the names. Short files are read many
        at a time where the servers are Cairn's."""
        entries = self.client.read_directory(self._strip_protocol(path))
        while (found := entries.next()) is not None:
            info, data = found
            if info["type"] == "file":
                yield info["name"], self.cat_file(info["name"]) if data is None else data

    def cat_ranges(
        self, paths, starts, ends, max_gap=None, on_error: str = "return", **kwargs: Any
    ) -> list:
        """Reads all ranges side by side; each file is opened once.

        Ranges with at most ``max_gap`` bytes between them are read as one. They may overlap; what lies behind the end
        of a file is not there.
        """
        if not isinstance(paths, list):
            raise TypeError("paths is not a list")
        starts = starts if isinstance(starts, (list, tuple)) else [starts] * len(paths)
        ends = ends if isinstance(ends, (list, tuple)) else [ends] * len(paths)
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("as many starts and ends are needed as paths")
        paths = self._strip_protocol(paths)
        found = self.client.read_ranges(list(zip(paths, starts, ends)), max_gap=max_gap, **kwargs)
        failed = [one for one in found if isinstance(one, Exception)]
        if failed and on_error == "raise":
            raise failed[0]
        return found

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        with self.open(path, "xb" if mode == "create" else "wb", **kwargs) as file:
            file.write(value)


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _parents(path: str):
    """All directories that a path is in."""
    names = path.strip("/").split("/")
    if path != "/":
        yield from (f"/{'/'.join(names[:count])}" for count in range(len(names)))


def register_hdfs() -> None:
    """Has fsspec use this file system for ``hdfs://`` as well."""
    fsspec.register_implementation("hdfs", CairnFileSystem, clobber=True)
