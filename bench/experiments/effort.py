"""What a task costs: Joules by the meters in the machine's processors (RAPL) where they can be read, else processor seconds.

The meters count all that runs on the machine, also what waits. Processor seconds are of the servers of one system and of its
client.
"""

import contextlib
import pathlib

POWERCAP = pathlib.Path("/sys/class/powercap")


class Meters:
    """The meters of all packages. Linux lets only root read them."""

    def __init__(self, folder=POWERCAP):
        self.zones = []
        # A zone with two colons is a part of a package.
        for zone in sorted(folder.glob("intel-rapl:*")):
            if zone.name.count(":") == 1:
                self.zones.append((zone / "energy_uj", int((zone / "max_energy_range_uj").read_text())))
        try:
            self.read()
        except OSError:
            self.zones = []

    def read(self):
        return [int(path.read_text()) for path, _ in self.zones]

    def joules(self, before):
        """Joules since they read `before`. A meter begins anew at the end of its range: tasks are shorter than a round."""
        pairs = zip(self.read(), before, self.zones)
        return sum(now - then if now >= then else now - then + most for now, then, (_, most) in pairs) / 1e6


METERS = Meters()
UNIT = "J" if METERS.zones else "CPU s"


class Effort:
    """What a task has taken; `amount` is known when it is over."""

    def __init__(self):
        self.of_client, self.amount = 0, None

    def client(self, cpu):
        """Takes processor seconds of a client."""
        self.of_client += cpu


@contextlib.contextmanager
def effort(system):
    """Measures what is done in a `with` on a system."""
    spent = Effort()
    before = METERS.read() if METERS.zones else system.cpu_seconds()
    yield spent
    spent.amount = METERS.joules(before) if METERS.zones else system.cpu_seconds() - before + spent.of_client
