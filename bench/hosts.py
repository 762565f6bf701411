"""Emulated hosts: one network namespace for each DataNode, one for the NameNode and the clients.

Links go through a bridge in a namespace of its own, so that nothing of the machine's own network is
touched, and may be capped with `tc`. Needs root, `ip` and `tc`.
"""

import asyncio
import subprocess
import sys

from sides import spawn

PREFIX = "cairn-bench"
PORT = 9866


def run(*command):
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


class Hosts:
    """As many hosts as DataNodes, each with its own address; use it in a `with`."""

    name_address = "10.77.0.250"

    def __init__(self, datanodes, mbit=None, behind_proxy=()):
        self.count, self.mbit, self.behind_proxy = datanodes, mbit, set(behind_proxy)

    def __enter__(self):
        self.remove()
        hub = f"{PREFIX}-hub"
        run("ip", "netns", "add", hub)
        run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", hub, "addr", "add", f"{self.name_address}/24", "dev", "bridge")
        for link in ("bridge", "lo"):
            run("ip", "-n", hub, "link", "set", link, "up")
        for i in range(self.count):
            host, port = f"{PREFIX}-{i}", f"port{i}"
            run("ip", "netns", "add", host)
            run("ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
            run("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
            run("ip", "-n", host, "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
            for link in ("eth0", "lo"):
                run("ip", "-n", host, "link", "set", link, "up")
            if self.mbit:
                # Both directions of the host's link: what it sends, and what the bridge sends to it.
                for where, link in ((host, "eth0"), (hub, port)):
                    run("tc", "-n", where, "qdisc", "add", "dev", link, "root", "tbf",
                        "rate", f"{self.mbit}mbit", "burst", "256k", "latency", "100ms")
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        found = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
        for line in found.splitlines():
            if line.startswith(PREFIX):
                subprocess.run(["ip", "netns", "del", line.split()[0]], check=False)

    def address(self, index):
        return f"10.77.0.{index + 1}"

    def keys(self, index):
        """Configuration that gives a DataNode its addresses; behind a proxy it hides on its loopback interface."""
        address = self.address(index)
        return {
            "dfs.datanode.address": f"{'127.0.0.1' if index in self.behind_proxy else address}:{PORT}",
            "dfs.datanode.ipc.address": f"{address}:9867",
            "dfs.datanode.http.address": f"{address}:9864",
            "dfs.datanode.hostname": address,
        }

    def on(self, index):
        """What to put before a command so that it runs on a DataNode's host; None is the NameNode's and the clients'."""
        return ["ip", "netns", "exec", f"{PREFIX}-hub" if index is None else f"{PREFIX}-{index}"]

    def proxy(self, index, delay_ms):
        """Starts a proxy in front of a DataNode that holds every packet of its answers back."""
        command = [sys.executable, __file__, self.address(index), str(delay_ms)]
        return spawn(self.on(index) + command)


async def forward(source, sink, delay):
    """Passes bytes on in order, each `delay` seconds after it came."""
    loop = asyncio.get_running_loop()
    due = asyncio.Queue()

    async def send():
        while True:
            at, data = await due.get()
            await asyncio.sleep(max(0, at - loop.time()))
            if not data:
                sink.close()
                return
            sink.write(data)
            await sink.drain()

    sender = asyncio.create_task(send())
    try:
        while data := await source.read(1 << 16):
            due.put_nowait((loop.time() + delay, data))
    except OSError:
        pass
    due.put_nowait((loop.time() + delay, b""))
    await asyncio.gather(sender, return_exceptions=True)


async def serve(address, delay):
    async def connection(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", PORT)
        except OSError:
            writer.close()
            return
        await asyncio.gather(forward(reader, far_writer, 0), forward(far_reader, writer, delay))

    server = await asyncio.start_server(connection, address, PORT)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]) / 1000))
