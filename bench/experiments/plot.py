"""Figures as SVG, one panel below the other; nothing outside of the file is referred to."""

import math
from xml.sax.saxutils import escape

from figures import short

WIDE, HIGH = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 230, 36, 52
COLORS = {"hadoop": "#c2571a", "cairn": "#1f5fa8", "published": "#7a7a7a"}
# Lines that lie on each other are all seen: the first is the widest.
WIDTHS = {"hadoop": 6, "cairn": 2, "published": 2}
OPACITY = {"hadoop": 0.5, "cairn": 1, "published": 1}
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4")
STYLE = "font-family:sans-serif;font-size:12px"
# Numbers that are further apart than this are on a logarithmic axis.
FAR_APART = 30


class Axis:
    """Where numbers are between two ends in pixels."""

    def __init__(self, values, start, end, from_zero):
        positive = [v for v in values if v > 0]
        self.is_log = bool(positive) and len(positive) == len(values) and max(positive) / min(positive) > FAR_APART
        self.start, self.end = start, end
        if self.is_log:
            self.low, self.high = math.log10(min(positive)), math.log10(max(positive))
        else:
            self.low, self.high = (0 if from_zero else min(values)), max(values)
        if self.low == self.high:
            self.low, self.high = self.low - 0.5, self.high + 0.5

    def at(self, value):
        value = math.log10(value) if self.is_log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self):
        if self.is_log:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            if last - first >= 1:
                return [10.0 ** n for n in range(first, last + 1)]
            return [10 ** self.low, 10 ** self.high]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
        step = next(step * n for n in (1, 2, 5, 10) if (self.high - self.low) / (step * n) <= 6)
        return [n * step for n in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def label(tick):
    """A tick's number: 10k, 1M."""
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(tick) >= 10 * 1e3 and abs(tick) >= size:
            return f"{tick / size:g}{suffix}"
    return short(tick)


def text(x, y, words, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, color, dash="", wide=1, opacity=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{wide}"'
            + (f' stroke-opacity="{opacity}"' if opacity < 1 else "")
            + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")


def looks(figure):
    """Color and dash of each series: the color says which system, the dash or shade which series."""
    names = []
    for _, series in figure.columns():
        if series not in names:
            names.append(series)
    return {(system, series): (COLORS[system], names.index(series)) for system, series in figure.columns()}


def frame(figure, top, y_axis):
    """Title, horizontal lines with their values, and what the axes are."""
    right, bottom = WIDE - RIGHT, top + HIGH - BOTTOM
    yield text(LEFT, top + 18, figure.title, extra='style="font-weight:bold;font-size:14px"')
    for tick in y_axis.ticks():
        yield line(LEFT, y_axis.at(tick), right, y_axis.at(tick), "#dddddd")
        yield text(LEFT - 6, y_axis.at(tick) + 4, label(tick), "end")
    yield line(LEFT, bottom, right, bottom, "#333333")
    yield text((LEFT + right) / 2, bottom + 42, figure.x, "middle")
    yield text(14, (top + TOP + bottom) / 2, figure.y, "middle",
               f'transform="rotate(-90 14 {(top + TOP + bottom) / 2:.1f})"')


def legend(figure, top, mark):
    for row, column in enumerate(figure.columns()):
        y = top + TOP + 8 + 18 * row
        yield from mark(column, WIDE - RIGHT + 16, y)
        yield text(WIDE - RIGHT + 46, y + 4, f"{column[1]} ({column[0]})")


def lines(figure, top, look):
    right, bottom = WIDE - RIGHT, top + HIGH - BOTTOM
    values = [figure.value(*column, x) for column in figure.columns() for x in figure.samples[column]]
    x_axis, y_axis = Axis(figure.xs(), LEFT, right, False), Axis(values, bottom, top + TOP, True)
    yield from frame(figure, top, y_axis)
    ticks = figure.xs() if len(figure.xs()) <= 8 and not x_axis.is_log else x_axis.ticks()
    for tick in ticks:
        yield line(x_axis.at(tick), bottom, x_axis.at(tick), bottom + 4, "#333333")
        yield text(x_axis.at(tick), bottom + 18, label(tick), "middle")
    for column in figure.columns():
        color, number = look[column]
        points = [(x_axis.at(x), y_axis.at(figure.value(*column, x))) for x in figure.xs() if x in figure.samples[column]]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = DASHES[number % len(DASHES)]
        yield (f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{WIDTHS[column[0]]}" '
               f'stroke-opacity="{OPACITY[column[0]]}"'
               + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")
        for x, y in points:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{WIDTHS[column[0]] / 2 + 2}" fill="{color}" ' \
                  f'fill-opacity="{OPACITY[column[0]]}"/>'

    def mark(column, x, y):
        color, number = look[column]
        yield line(x, y, x + 26, y, color, DASHES[number % len(DASHES)], WIDTHS[column[0]], OPACITY[column[0]])

    yield from legend(figure, top, mark)


def bars(figure, top, look):
    right, bottom = WIDE - RIGHT, top + HIGH - BOTTOM
    columns, places = figure.columns(), figure.xs()
    values = [figure.value(*column, x) for column in columns for x in figure.samples[column]]
    y_axis = Axis([0, *values], bottom, top + TOP, True)
    yield from frame(figure, top, y_axis)
    group = (right - LEFT) / len(places)
    wide = group * 0.8 / len(columns)

    def shade(column):
        color, number = look[column]
        return f'fill="{color}" fill-opacity="{max(0.25, 1 - 0.3 * number):.2f}" stroke="{color}"'

    for place, x in enumerate(places):
        # What is long has two lines.
        for row, words in enumerate(str(short(x)).split(", ", 1)):
            yield text(LEFT + (place + 0.5) * group, bottom + 16 + 13 * row, words, "middle")
        for number, column in enumerate(columns):
            value = figure.value(*column, x)
            if value is not None:
                left = LEFT + place * group + group * 0.1 + number * wide
                yield (f'<rect x="{left:.1f}" y="{y_axis.at(value):.1f}" width="{wide * 0.92:.1f}" '
                       f'height="{bottom - y_axis.at(value):.1f}" {shade(column)}/>')

    def mark(column, x, y):
        yield f'<rect x="{x}" y="{y - 6}" width="26" height="12" {shade(column)}/>'

    yield from legend(figure, top, mark)


def svg(figures, note):
    """All figures in one picture; `note` is below them."""
    drawn = [figure for figure in figures if figure.samples]
    high = HIGH * len(drawn) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{high}" style="{STYLE}">',
             f'<rect width="{WIDE}" height="{high}" fill="white"/>']
    for number, figure in enumerate(drawn):
        draw = bars if figure.kind == "bars" else lines
        parts += draw(figure, number * HIGH, looks(figure))
    parts += [text(LEFT, high - 10, note, extra='fill="#555555"'), "</svg>"]
    return "\n".join(parts) + "\n"
