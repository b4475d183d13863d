"""Records for other programs: Go's benchmark format, JSON lines and CSV. tests/README.md says what is in them."""

import csv
import io
import json

FACTS = ("where", "cpus", "command", "host", "date", "busy")


def flat(record):
    """Keys of the record have no dot; those that say where it comes from have one."""
    capture = record.capture
    about = {"record.kind": record.kind, "record.line": record.line, "record.boot": record.boot, "console.name": capture.name}
    about |= {f"console.{key}": capture.facts[key] for key in FACTS if key in capture.facts}
    return about | ({"console.failed": capture.problem} if capture.problem else {}) | record.values


def flat_records(captures):
    return [flat(record) for capture in captures for record in capture.records]


def to_json(captures):
    return "".join(json.dumps(values) + "\n" for values in flat_records(captures))


def to_csv(captures):
    rows, out = flat_records(captures), io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def unit_of(key):
    """benchstat knows ns/op and NAME-ns as times."""
    return "ns/op" if key == "ns" else f"{key[3:]}-ns" if key.startswith("ns_") else f"{key[:-3]}-ns" if key.endswith("_ns") else key


def go_name(record):
    """The settings are parts of the name. The number at its end is that of the CPUs."""
    parts = (f"/{key}={str(value).replace('/', ':')}" for key, value in record.settings.items())
    return f"Benchmark{record.kind.replace(' ', '_').capitalize()}{''.join(parts)}-{record.capture.facts.get('cpus', 1)}"


def to_go(captures):
    """The format in which `go test -bench` prints, for benchstat. Consoles with the same head are the same machine to it."""
    lines = []
    for capture in captures:
        lines += [f"{key}: {capture.facts.get(key, '')}" for key in ("where", "command")]
        for record in capture.records:
            values = "".join(f" {value} {unit_of(key)}" for key, value in record.measured.items())
            lines += [f"{go_name(record)} 1{values}"] if values else []
    return "".join(f"{line}\n" for line in lines)


FILES = {"records.jsonl": to_json, "records.csv": to_csv, "records.txt": to_go}


def write(captures, folder):
    for name, text_of in FILES.items():
        (folder / name).write_text(text_of(captures), encoding="utf-8")
