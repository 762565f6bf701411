"""Files on a Cairn or HDFS cluster, also for fsspec: ``cairn://HOST:PORT/path``."""

from ._native import Client, Reader, Writer
from .filesystem import CairnFileSystem, register_hdfs

__all__ = ["CairnFileSystem", "Client", "Reader", "Writer", "register_hdfs"]
