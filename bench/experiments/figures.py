"""What an experiment has measured: figures, each a table and a plot, with the published values beside it, and claims."""

import statistics

SYSTEMS = ("hadoop", "cairn", "published")


class Figure:
    """Series of values over `x`, which is numbers (`lines`, on a logarithmic axis where they are far apart) or names (`bars`).
    A value is a median of samples."""

    def __init__(self, title, x, y, kind="lines"):
        self.title, self.x, self.y, self.kind = title, x, y, kind
        self.samples, self.places = {}, []

    def add(self, system, series, x, value):
        """Takes a sample of a system, or what is published as `published`."""
        assert system in SYSTEMS, system
        if x not in self.places:
            self.places.append(x)
        self.samples.setdefault((system, series), {}).setdefault(x, []).append(value)

    def value(self, system, series, x):
        """The median there, or None."""
        samples = self.samples.get((system, series), {}).get(x)
        return statistics.median(samples) if samples else None

    def columns(self):
        """The series in the order of systems, then as they came."""
        return sorted(self.samples, key=lambda column: SYSTEMS.index(column[0]))

    def xs(self):
        return self.places if self.kind == "bars" else sorted(self.places)

    def markdown(self):
        """A table: a row for each place, a column for each series."""
        columns = self.columns()
        lines = [f"### {self.title}", "", f"{self.y}, medians.", "",
                 "| " + " | ".join([self.x, *(f"{series} ({system})" for system, series in columns)]) + " |",
                 "|" + "---|" * (len(columns) + 1)]
        for x in self.xs():
            values = (self.value(*column, x) for column in columns)
            lines.append("| " + " | ".join([short(x), *("" if v is None else short(v) for v in values)]) + " |")
        return "\n".join(lines)

    def data(self):
        """All samples, for a file."""
        return {"title": self.title, "x": self.x, "y": self.y, "kind": self.kind,
                "series": [{"system": system, "series": series, "samples": [[x, values] for x, values in points.items()]}
                           for (system, series), points in self.samples.items()]}


class Claim:
    """What a source says, and whether it is so here: `holds` judges a value of each system."""

    def __init__(self, text, published, values, holds):
        self.text, self.published = text, published
        self.values = {system: value for system, value in values.items() if value is not None}
        self.verdicts = {system: bool(holds(value)) for system, value in self.values.items()}

    def row(self):
        def cell(system):
            if system not in self.values:
                return "not measured"
            return f"{short(self.values[system])}, {'holds' if self.verdicts[system] else 'does not hold'}"

        return f"| {self.text} | {self.published} | {cell('hadoop')} | {cell('cairn')} |"

    def data(self):
        return {"claim": self.text, "published": self.published, "values": self.values, "holds": self.verdicts}


def claims_markdown(claims):
    lines = ["### What is claimed", "", "| claim | published | Hadoop here | Cairn here |", "|---|---|---|---|"]
    return "\n".join([*lines, *(claim.row() for claim in claims)])


def short(value):
    """A value with as many digits as say something."""
    if not isinstance(value, (int, float)):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value)}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
