"""A client for the benchmarks that uses `hdfs-native`: the commands `write` and `read` of `benchclient`, of which
`crates/client/examples/benchclient.rs` tells. Run as `native.py hdfs://HOST:PORT`."""

import concurrent.futures
import sys
import time

import hdfs_native

PIECE = bytes(i * 31 % 251 for i in range(1 << 20))


def write(client, path, length):
    # What is written over is gone already, and what is refused leaves an open file behind.
    with client.create(path, hdfs_native.WriteOptions(overwrite=True, create_parent=True)) as file:
        for left in range(length, 0, -len(PIECE)):
            file.write(PIECE if left >= len(PIECE) else PIECE[:left])


def read(client, path):
    with client.read(path) as file:
        got = sum(len(piece) for piece in file.read_range_stream(0, len(file)))
        if got != len(file):
            raise OSError(f"{path}: {got} bytes of {len(file)}")


def side_by_side(count, at_once, one):
    """Seconds of `one(0)` to `one(count - 1)`, some of them at once."""
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(int(at_once)) as pool:
        for _ in pool.map(one, range(int(count))):
            pass
    return time.monotonic() - begin


def main():
    client = hdfs_native.Client(sys.argv[1])
    for line in sys.stdin:
        try:
            match line.split():
                case ["write", folder, count, length, at_once]:
                    seconds = side_by_side(count, at_once, lambda i: write(client, f"{folder}/{i}", int(length)))
                case ["read", folder, count, at_once]:
                    seconds = side_by_side(count, at_once, lambda i: read(client, f"{folder}/{i}"))
                case _:
                    raise ValueError(f"unknown command {line}")
            print(f"{seconds:.6f}", flush=True)
        # Whatever the library raises, also a panic of its own, is what it has to say.
        except BaseException as error:
            print("error", str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
