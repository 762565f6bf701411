"""What the experiments share: scales, both systems on this machine, and where figures go.

An experiment is a program that calls `run` with its settings at each scale and a function that measures. It knows what
is written and read; how a cluster of either side is started is in `bench/sides.py`, how Hadoop's programs are run in
`bench/programs.py`, and what its source published in `published.json`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from effort import UNIT  # noqa: E402
from figures import Claim, Figure, claims_markdown  # noqa: E402
from plot import svg  # noqa: E402
from programs import Program, fetch  # noqa: E402
from sides import HadoopClient, ROOT, makers, prepare, scratch, settle, site, started  # noqa: E402

SCALES = ("tiny", "usual", "large")
MIB = 1 << 20
GIVE_UP_AFTER = 900


class Room:
    """One run of an experiment."""

    def __init__(self, name, args, work):
        self.name, self.args, self.work = name, args, work
        self.figures, self.claims, self.remarks = [], [], []
        self.log = open(work / "client.log", "ab")
        self.published = json.loads((HERE / "published.json").read_text())
        self.client_keys = {}
        self._admin = self._local = None

    def names(self):
        """The systems that are measured."""
        return [name for name in ("hadoop", "cairn") if self.args.only in (None, name)]

    @property
    def admin(self):
        """Hadoop's client in one long-lived JVM, for both systems, with the keys that `client_keys` had at first."""
        if self._admin is None:
            conf = self.work / "client"
            conf.mkdir()
            site(conf / "hdfs-site.xml", self.client_keys)
            self._admin = HadoopClient(self.log, conf=str(conf))
        return self._admin

    @contextlib.contextmanager
    def systems(self, datanodes, keys=()):
        """Both systems, started anew; those that serve at the end are stopped."""
        running = []
        try:
            made = makers(self.work, datanodes, self.args.cairn, self.args.stable, keys)
            for name in self.names():
                running.append(started(made[name], self.admin))
            yield running
        finally:
            for system in running:
                system.stop()

    def folder(self, system, path, layout):
        """Makes a folder with a policy, or with copies."""
        self.admin("folder", system.uri, path, "replicate" if is_copies(layout) else layout)

    def write(self, system, folder, count, length, at_once=4):
        """Has Hadoop's client write files; seconds."""
        return self.admin("write", system.uri, folder, count, length, at_once)

    def delete(self, systems, path):
        """Deletes a path of each system, and waits until its blocks are gone."""
        for system in systems:
            self.admin("delete", system.uri, path)
        settle(systems)

    def local(self, size):
        """A folder in memory, or else on disk, for what programs keep on the local disk."""
        if self._local is None:
            self._local = scratch(size)
        return self._local

    def program(self, system, maps, local):
        """Hadoop's programs on a system; a job's client looks 20 ms apart whether it is done."""
        fetch()
        return Program(system, local, self.log, maps, 20)

    def figure(self, title, x, y, kind="lines"):
        figure = Figure(title, x, y, kind)
        self.figures.append(figure)
        return figure

    def effort_figure(self, title, x, kind="bars", per=None):
        """A figure of what tasks cost, by `effort`, each or for so much."""
        what = "energy" if UNIT == "J" else "processor time of client and servers"
        return self.figure(f"{title}: {what}", x, f"{UNIT} for each {per}" if per else UNIT, kind)

    def told(self, *path):
        """What this experiment's source published, or None."""
        found = self.published["experiments"].get(self.name, {})
        for word in path:
            found = found.get(word) if isinstance(found, dict) else None
        return found

    def claim(self, text, published, value, holds):
        """Takes what a source claims; `value` gives a system's figure by its name, or None."""
        values = {name: value(name) for name in self.names()}
        if any(v is not None for v in values.values()):
            self.claims.append(Claim(text, published, values, holds))

    def remark(self, words):
        """Takes what tables cannot say, such as what was left out."""
        if words not in self.remarks:
            self.remarks.append(words)
            self.say(words)

    def say(self, words):
        print(f"  {words}", flush=True)

    def close(self):
        if self._admin is not None:
            self._admin.close()
        if self._local is not None:
            shutil.rmtree(self._local, ignore_errors=True)
        self.log.close()

    def setting(self):
        """What the figures depend on."""
        kept = {k: v for k, v in vars(self.args).items() if k not in ("cairn", "work", "out", "keep_work")}
        return {**kept, "build": self.args.cairn.parent.name, "date": time.strftime("%Y-%m-%d"),
                "machine": platform.platform(), "cpus": os.cpu_count()}

    def save(self, title):
        """Writes the table, the plot and the samples, and prints the table."""
        out, setting = self.args.out, self.setting()
        out.mkdir(parents=True, exist_ok=True)
        words = ", ".join(f"{k} {v}" for k, v in setting.items() if v not in (None, False))
        source = self.published["sources"].get(self.told("source"))
        parts = [f"# {title}", f"Here: {words}."]
        if source:
            parts.append(f"Published: {source['title']} ({source['by']}, {source['year']}), {self.told('place')}. "
                         f"There: {source['setting']}")
        parts += [figure.markdown() for figure in self.figures if figure.samples]
        if self.claims:
            parts.append(claims_markdown(self.claims))
        if self.remarks:
            parts.append("\n".join(f"- {remark}" for remark in self.remarks))
        table = "\n\n".join(parts) + "\n"
        (out / f"{self.name}.md").write_text(table)
        (out / f"{self.name}.svg").write_text(svg(self.figures, f"{setting['date']}, {setting['build']} build, scale "
                                                                f"{self.args.scale}, {setting['cpus']} CPUs"))
        (out / f"{self.name}.json").write_text(json.dumps({
            "setting": setting, "figures": [f.data() for f in self.figures], "claims": [c.data() for c in self.claims],
            "remarks": self.remarks}, indent=1) + "\n")
        print(f"\n{table}\nwritten to {out}")


def is_copies(layout):
    """Whether a layout is a number of copies: 1x, 3x."""
    return layout.endswith("x") and layout[:-1].isdigit()


def values(text):
    """A list from the command line: 1,4,16."""
    return [int(word) for word in str(text).split(",")]


def stored(system):
    """Bytes of finalized blocks on all DataNodes, and of their checksums."""
    total = 0
    for path in system.work.glob("dn*/current/BP-*/current/finalized/**/blk_*"):
        # It may be deleted while it is looked at.
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def wait(is_so, what):
    """Waits until something is so; ends the experiment if it is not after a while."""
    until = time.monotonic() + GIVE_UP_AFTER
    while not is_so():
        if time.monotonic() > until:
            sys.exit(f"after {GIVE_UP_AFTER} s {what}")
        time.sleep(0.2)


def own(room, system, *words):
    """Runs a command of Cairn's on a system; seconds and what it printed."""
    begin = time.monotonic()
    done = subprocess.run([str(room.args.cairn), "--conf", str(system.conf), *map(str, words)], text=True,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"cairn {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return time.monotonic() - begin, done.stdout


def run(name, doc, settings, measure):
    """Reads the command line, measures, and saves. `settings` are a name, its values at each scale, and what it is."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scale", choices=SCALES, default="usual", help="how much of everything; options below change parts")
    for option, (*at_scales, words) in settings.items():
        told = ", ".join(f"{scale} {value}" for scale, value in zip(SCALES, at_scales))
        p.add_argument(f"--{option}", type=type(at_scales[0]), help=f"{words} ({told})")
    p.add_argument("--only", choices=["hadoop", "cairn"], help="measure one system alone")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--stable", action="store_true", help="both systems sync blocks before they are closed")
    p.add_argument("--cairn", type=pathlib.Path, default=ROOT / "target" / "release" / "cairn")
    p.add_argument("--work", type=pathlib.Path, help="where the DataNodes keep blocks (default: a temporary folder)")
    p.add_argument("--keep-work", action="store_true", help="leave that, with the logs")
    p.add_argument("--out", type=pathlib.Path, help="folder for the table, the plot and the samples",
                   default=ROOT / "target" / "bench" / "experiments" / time.strftime(f"{name}-%Y%m%d-%H%M%S"))
    args = p.parse_args()
    for option, (*at_scales, _) in settings.items():
        key = option.replace("-", "_")
        if getattr(args, key) is None:
            setattr(args, key, at_scales[SCALES.index(args.scale)])
    if not os.access(args.cairn, os.X_OK):
        sys.exit(f"no binary at {args.cairn}: cargo build --release -p cairn, or give --cairn")
    prepare()
    work = pathlib.Path(tempfile.mkdtemp(prefix="cairn-experiment-", dir=args.work))
    title = doc.strip().splitlines()[0]
    print(f"{title}\nscale {args.scale}, files in {work}", flush=True)
    room = Room(name, args, work)
    try:
        measure(room)
    finally:
        room.close()
    room.save(title)
    if not args.keep_work:
        shutil.rmtree(work)
