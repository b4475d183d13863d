"""Records for other programs: JSON lines and CSV. tests/README.md says what is in them."""

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


def write(captures, folder):
    (folder / "records.jsonl").write_text(to_json(captures), encoding="utf-8")
    (folder / "records.csv").write_text(to_csv(captures), encoding="utf-8")
