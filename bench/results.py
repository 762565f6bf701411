"""Samples of a benchmark, their medians, ratios and shares of this machine's limits, as a table and as a file."""

import json
import os
import platform
import statistics

# The limits that a column each has.
COLUMNS = (("memory copy", "copy"), ("loopback TCP", "tcp"), ("disk write", "disk"))


class Results:
    """Samples by what was measured and by system."""

    def __init__(self, columns=COLUMNS):
        self.samples, self.limits, self.columns, self.remarks = {}, {}, columns, []
        self.bytes_each = {}

    def add(self, key, unit, system, value, each=None):
        """Takes a sample. `each` is how many bytes one of the unit's things has, where the unit does not say."""
        if each:
            self.bytes_each[key, unit] = each
        self.samples.setdefault((key, unit), {}).setdefault(system, []).append(value)

    def limit(self, found):
        """Takes what a run has found out about the machine: bytes a second, or seconds."""
        for name, value in found.items():
            self.limits.setdefault(name, []).append(value)

    def remark(self, text):
        """Takes what the table cannot say, such as what a client refuses."""
        if text not in self.remarks:
            self.remarks.append(text)
            print(f"  {text}", flush=True)

    def of_limits(self):
        return {name: statistics.median(values) for name, values in self.limits.items()}

    def shares(self, key, unit, value):
        """What part of each limit a median is; of latencies, what part of it a round trip would take."""
        limits = self.of_limits()
        each = 1e6 if unit == "MB/s" else self.bytes_each.get((key, unit))
        if each:
            return {name: float(f"{value * each / rate:.2g}") for name, rate in limits.items() if "trip" not in name}
        if unit == "ms" and value:
            return {name: float(f"{s * 1e3 / value:.2g}") for name, s in limits.items()
                    if "trip" in name and f" {name.removeprefix('round trip ')}," in f" {key}"}
        return {}

    def rows(self):
        for (key, unit), sides in self.samples.items():
            medians = {name: statistics.median(values) for name, values in sides.items()}
            row = {"what": key, "unit": unit, **{name: float(f"{m:.4g}") for name, m in medians.items()}}
            if len(medians) == 2 and medians.get("hadoop"):
                row["ratio"] = float(f"{medians['cairn'] / medians['hadoop']:.3g}")
            row["share"] = {name: self.shares(key, unit, m) for name, m in medians.items()}
            yield row

    def show(self):
        heads = "".join(f"{short:>7}" for _, short in self.columns)
        rows = list(self.rows())
        wide = max(len(r["what"]) for r in rows) + 2
        print(f"\n{'median':{wide}}{'hadoop':>10}{'cairn':>10}  {'unit':8}{'cairn/hadoop':>12}   cairn of:{heads}")
        for r in rows:
            cells = "".join(f"{r.get(name, ''):>10}" for name in ("hadoop", "cairn"))
            share = r["share"].get("cairn", {})
            parts = [share.get(name) for name, _ in self.columns]
            if r["unit"] == "ms" and share:
                parts = [None, next(iter(share.values()))]
            tail = "".join(f"{'' if part is None else part:>7}" for part in parts)
            print(f"{r['what']:{wide}}{cells}  {r['unit']:8}{r.get('ratio', ''):>12}            {tail}".rstrip())
        for name, value in self.of_limits().items():
            value = f"{value * 1e6:.0f} us" if "trip" in name else f"{value / 1e6:.0f} MB/s"
            print(f"limit of this machine, {name}: {value}")
        for remark in self.remarks:
            print(remark)

    def save(self, out, **settings):
        """Writes everything to a JSON file."""
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({
            "rows": list(self.rows()), "limits": self.limits, "remarks": self.remarks, **settings,
            "machine": platform.platform(), "cpus": os.cpu_count(),
            "samples": {f"{key} [{unit}]": sides for (key, unit), sides in self.samples.items()},
        }, indent=1) + "\n")
        print(f"\nwritten to {out}")
