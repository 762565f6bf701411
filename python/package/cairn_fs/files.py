"""Open files as Python and fsspec have them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import Client, Reader


class _Raw(io.RawIOBase):
    """What a buffered reader reads from."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._reader.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self._reader.read(-1)

    def tell(self) -> int:
        return self._reader.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._reader.tell(), io.SEEK_END: self._reader.size}
        if whence not in base:
            raise ValueError(f"whence must be 0, 1 or 2, not {whence}")
        position = base[whence] + offset
        if position < 0:
            raise ValueError(f"negative seek position {position}")
        return self._reader.seek(position)

    def close(self) -> None:
        if not self.closed:
            self._reader.close()
        super().close()


class ReadFile(io.BufferedReader):
    """A file open for reading. Reads in order are read ahead; those after jumps are not."""

    def __init__(self, fs, path: str, reader: Reader, buffer_size: int) -> None:
        self.fs = fs
        self.path = path
        self.size = reader.size
        self._reader = reader
        self._buffer_size = buffer_size
        super().__init__(_Raw(reader), buffer_size)

    mode = "rb"

    def __reduce_ex__(self, protocol):
        return _reopen, (self.fs, self.path, self._buffer_size, self.tell())

    @property
    def name(self) -> str:
        return self.path

    @property
    def full_name(self) -> str:
        return self.fs.unstrip_protocol(self.path)

    def read_at(self, position: int, count: int) -> bytes:
        """Reads bytes at a position; several threads may do so at a time."""
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return self._reader.read_at(position, count)


def _reopen(fs, path: str, buffer_size: int, position: int) -> ReadFile:
    """An open file in the process that unpickles it."""
    file = ReadFile(fs, path, fs.client.open(path), buffer_size)
    file.seek(position)
    return file


class WriteFile(io.BufferedIOBase):
    """A file open for writing. With ``autocommit=False`` it has its name only after ``commit``."""

    def __init__(self, fs, path: str, mode: str, autocommit: bool, options: dict) -> None:
        client: Client = fs.client
        self.fs = fs
        self.path = path
        self.mode = mode
        self.autocommit = autocommit
        self._temporary = None
        self._is_whole = False
        if mode == "ab" and client.info(path) is not None:
            if not autocommit:
                raise ValueError("appending cannot be taken back: it needs autocommit")
            self._writer = client.append(path)
            return
        if mode == "xb" and client.info(path) is not None:
            raise FileExistsError(17, os.strerror(17), path)
        if not autocommit:
            self._temporary = f"{path}.{secrets.token_hex(8)}._COPYING_"
        target = self._temporary or path
        self._writer = client.create(target, overwrite=mode == "wb", **options)

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        """Writes all bytes of any object that has some, such as an array; returns how many."""
        self._check()
        return self._writer.write(data if isinstance(data, bytes) else _bytes_of(data))

    def tell(self) -> int:
        self._check()
        return self._writer.tell()

    def flush(self) -> None:
        """Does nothing: what was written is sent by itself. See ``sync``."""

    def sync(self, durable: bool = False) -> None:
        """Returns when new readers see what was written, and with ``durable`` when it is on stable
        storage. Fails for erasure coded files."""
        self._check()
        self._writer.sync(durable)

    def close(self) -> None:
        if self.closed:
            return
        try:
            # There is no writer when opening has failed.
            writer = getattr(self, "_writer", None)
            if writer is not None:
                writer.close()
                self._is_whole = True
        finally:
            super().close()

    def commit(self) -> None:
        """Gives a file with ``autocommit=False`` its name."""
        self.close()
        if self._temporary:
            if not self._is_whole:
                raise OSError(errno.EIO, "not committed: it could not be written to its end", self.path)
            self.fs.client.rename(self._temporary, self.path, overwrite=self.mode != "xb")
            self._temporary = None

    def discard(self) -> None:
        """Deletes a file with ``autocommit=False`` that was not committed."""
        # What could not be ended is to go all the same.
        with contextlib.suppress(OSError):
            self.close()
        if self._temporary:
            self.fs.client.delete(self._temporary)
            self._temporary = None

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def _bytes_of(data) -> memoryview | bytes:
    view = memoryview(data)
    if view.nbytes == 0:
        return b""
    try:
        return view.cast("B")
    except (TypeError, ValueError):
        # Not in one piece, or of a kind that cannot be cast.
        return view.tobytes()
