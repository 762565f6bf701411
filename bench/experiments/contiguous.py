"""Conversion of a tree in place to contiguous groups, which only Cairn has, to its end."""

import json
import time

from room import own, stored, wait

POLICY = "RS-6-3-contiguous"
# Blocks may be grouped as soon as their files are closed, short ones too.
AT_ONCE = {"cairn.ec.contiguous.quiet-time": "0", "cairn.ec.contiguous.short-quiet-time": "0"}
# Seconds in which no block file comes or goes once all is done.
STEADY = 15


def convert(room, system, path, policy=POLICY):
    """Converts it and waits until the copies are gone; seconds, and processor seconds of the servers."""
    own(room, system, "ec", "-enablePolicy", "-policy", policy)
    begin, cpu = time.monotonic(), system.cpu_seconds()
    own(room, system, "ec", "convert", "--policy", policy, path)
    wait(lambda: left(room, system, path, policy) == 0, "blocks are still to be grouped")
    # Parity is written and verified before copies go.
    return steady(system, begin, cpu)


def left(room, system, path, policy):
    """Bytes that are still to be grouped."""
    _, told = own(room, system, "--json", "ec", "convert", "--policy", policy, "--dry-run", path)
    return json.loads(told)["bytes_to_group"]


def steady(system, begin, cpu):
    """Seconds and processor seconds at the last moment at which a block file came or went."""
    last, at, used = None, begin, cpu
    while time.monotonic() < at + STEADY or last is None:
        now = stored(system)
        if now != last:
            last, at, used = now, time.monotonic(), system.cpu_seconds()
        time.sleep(0.2)
    return at - begin, used - cpu
