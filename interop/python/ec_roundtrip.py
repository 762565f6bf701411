"""Writes and reads an erasure-coded file with the Python package hdfs-native.

Usage: ec_roundtrip.py hdfs://HOST:PORT /directory-with-an-ec-policy /path/written/by/hadoop SHA256
Prints one line of JSON: the SHA-256 of what was written, and of what was read back.
"""

import hashlib
import json
import random
import sys

from hdfs_native import Client, WriteOptions


def digest_of(client, path):
    sha = hashlib.sha256()
    with client.read(path) as file:
        while chunk := file.read(1 << 20):
            sha.update(chunk)
    return sha.hexdigest()


def main():
    uri, directory, hadoop_path = sys.argv[1:4]
    client = Client(uri)
    rng = random.Random(5)
    results = []
    # Shorter than a cell, not a whole number of cells, and more than one block group of 6 x 1 MiB blocks.
    for length, options in ((10, None), (7_000_001, None), (20_000_003, WriteOptions(block_size=1 << 20))):
        data = rng.randbytes(length)
        path = f"{directory}/python-{length}"
        with client.create(path, options or WriteOptions()) as file:
            for start in range(0, length, 1 << 20):
                file.write(data[start : start + (1 << 20)])
        wrote = hashlib.sha256(data).hexdigest()
        results.append({"path": path, "wrote": wrote, "read": digest_of(client, path)})
        assert client.get_file_info(path).length == length, path
    print(json.dumps({"files": results, "hadoop": digest_of(client, hadoop_path)}))


if __name__ == "__main__":
    main()
