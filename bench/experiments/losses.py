"""Layouts and states of the Accumulo report: two DataNodes die long before they are taken for dead, so that nothing is repaired
while it is measured; then it is waited until all is whole again."""

from room import wait
from sides import units

LAYOUTS = ("3x", "RS-6-3-64k", "RS-6-3-1024k", "RS-10-4-1024k")
STATES = ("whole", "two gone", "repaired")
GONE = 2


def patient(patience):
    """Keys with which a DataNode that is gone is taken for dead after so many seconds: twice this and ten heartbeats."""
    return {"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": str((patience - 10) * 500)}


def repairable(room, layouts):
    """Those that there are enough DataNodes for once some are gone."""
    for layout in layouts:
        if units(layout) + GONE > room.args.datanodes:
            room.remark(f"{layout} is left out: after two are gone it needs {units(layout) + GONE} DataNodes to be repaired")
    return [layout for layout in layouts if units(layout) + GONE <= room.args.datanodes]


def change(room, systems, state, layouts):
    """Brings about the next of the states; files are in folders with the layouts' names."""
    if state == "two gone":
        for s in systems:
            for index in range(GONE):
                s.kill(index)
    if state == "repaired":
        for s in systems:
            wait(lambda of=s: room.admin("live", of.uri) == room.args.datanodes - GONE, f"{s.name} knows of nobody who is gone")
            for layout in layouts:
                wait(lambda of=s, path=f"/{layout}": room.admin("lost", of.uri, path) == 0, f"{s.name} has not repaired")


def still(room, systems, state):
    """Tells if a state was over before what was measured."""
    if state == "two gone":
        for s in systems:
            if room.admin("live", s.uri) != room.args.datanodes:
                room.remark(f"{s.name}: DataNodes were taken for dead while it was measured: give more --patience")
