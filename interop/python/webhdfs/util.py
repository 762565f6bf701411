"""What the tests of the package hdfs need and its release leaves out; it takes the place of their test/util.py."""

import os

from hdfs.client import InsecureClient


class _IntegrationTest:
    client = None

    @classmethod
    def setup_class(cls):
        url, user = os.environ["WEBHDFS_URL"], os.environ["WEBHDFS_USER"]
        cls.client = InsecureClient(url, user=user, root="/hdfscli")
        cls.client.delete("", recursive=True)

    def setup_method(self):
        self.client.delete("", recursive=True)
        self.client.makedirs("")

    def _read(self, path, encoding=None):
        with self.client.read(path, encoding=encoding) as reader:
            return reader.read()

    def _write(self, path, data, encoding=None):
        self.client.write(path, data, encoding=encoding)

    def _exists(self, path):
        return self.client.status(path, strict=False) is not None
