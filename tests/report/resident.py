"""Memory that goes back to the host after a program has freed it (balloon.py): Ashlar beside Linux, and over time."""

import pictures
from paper import Figure, Heading
from pictures import Series
from records import of_kind
from rows import item, machine, median, rows_of, runs, table

COLOURS = ("blue", "green", "red", "orange")


def mib(key):
    return median(item(key), 1 / 1024)


def seconds(key):
    """Of the runs that came so far."""
    return median(item(key), 1e-3, lambda record: key in record.values, True)


def over_time(cpus, records):
    series = []
    for number, row in enumerate(rows_of(records, kernel=item("kernel"), thp=item("thp"))):
        points = [(max(r["at_ms"], 1), r["kib"] / 1024) for r in row.records]
        series.append(Series(f"{row.key['kernel']}, thp={row.key['thp']}", points, COLOURS[number % 4]))
    name = f"resident-{cpus}"
    return Figure(name, pictures.lines(name, series, "ms after the memory was freed", "MiB that QEMU has", 10), f"Resident memory, {cpus} CPUs.")


def section(paper, captures):
    records, samples = of_kind(captures, "balloon_host"), of_kind(captures, "balloon_rss")
    if not records:
        return
    keys = {"kernel": item("kernel"), "CPUs": item("cpus"), "thp": item("thp"), "touched MiB": item("mib")}
    columns = {
        "before MiB": mib("before_kib"),
        "at most": mib("most_kib"),
        "in the end": mib("after_kib"),
        "s to all but 1 %": seconds("back_ms"),
        "s to within 5 % of before": seconds("all_ms"),
        "runs": runs,
    }
    paper.add(Heading("Freed memory goes back to the host"))
    paper.text("A program touches memory, gives it back and sleeps. The figures are what QEMU has of its host; a time that was not reached is missing.")
    paper.add(table("Memory of QEMU", rows_of(records, machine=machine, **keys), columns, ours=lambda row: row.key["kernel"] == "ashlar", left=2))
    paper.add(*(over_time(row.key["cpus"], row.records) for row in rows_of(samples, cpus=item("cpus"))))
