"""fsspec's own tests of file systems, on replicated and erasure coded folders."""

import os

import pytest
from fsspec.tests import abstract


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, cluster_fs):
        return cluster_fs

    @pytest.fixture
    def fs_path(self, folder):
        return folder

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: os.path.join(*parts)


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
