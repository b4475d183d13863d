"""The paragraphs of prose.txt, and the format of numbers and places in every section of the report."""

import re
from pathlib import Path

# Places in order, beginning with the place where a time means most.
WHERE = {
    "hardware": "real machine",
    "native": "hosted, native",
    "kvm": "QEMU, KVM",
    "tcg": "QEMU, emulated",
    "icount": "QEMU, instructions counted",
    "virtual": "virtual machine",
    "unknown": "unnamed machine",
}
PROSE = dict(re.findall(r"^== (\S+)\n(.+(?:\n.+)*)", Path(__file__).with_name("prose.txt").read_text(encoding="utf-8"), re.M))


def prose(name, **figures):
    """A paragraph of prose.txt with its figures."""
    return PROSE[name].format(emulated=PROSE["emulated"], **figures).replace("\n", " ")


def place(where, cpus):
    return f"{WHERE.get(where, where)}, {cpus} CPU{'s' if cpus != 1 else ''}"


def figure(value):
    """Three significant digits, no exponents: 0.0123, 1.23, 12.3, 1,230."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    for limit, digits in ((0.01, 5), (0.1, 4), (1, 3), (10, 2), (100, 1)):
        if abs(value) < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def times(value):
    return "-" if value is None else f"{figure(value)}x"


def percent(after, before):
    return "-" if not before or after is None else f"{(after / before - 1) * 100:+.1f} %"


def saved(base, base_sd, now, now_sd):
    """How much less time than the base: 12.3 %, or noise where the medians are no further apart than both deviations together."""
    if base is None or now is None or not base:
        return "-"
    if abs(base - now) <= base_sd + now_sd:
        return "noise"
    return f"{(1 - now / base) * 100:.1f} %"


def with_sd(value, sd):
    return "-" if value is None else f"{figure(value)} ({figure(sd)})"


def ratio(value, base):
    return value / base if value is not None and base else None


def exact_ratio(measured):
    """A ratio near 1, and the range of its runs, if there were several."""
    if measured is None:
        return "-"
    return f"{measured.median:.4f}" + (f" ({measured.low:.3f} to {measured.high:.3f})" if measured.runs > 1 else "")


def spread(measured, scale=1.0, unit=""):
    """ "12.3 (11.9 to 14.0)", or one figure if there was one run; of ratios the unit is x."""
    if measured is None:
        return "-"
    middle = figure(measured.median * scale) + unit
    return middle if measured.runs == 1 else f"{middle} ({figure(measured.low * scale)} to {figure(measured.high * scale)})"


def size(count):
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            return f"{figure(count / (1 << shift))} {unit}"
    return f"{count} B"
