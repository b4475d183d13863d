"""The kernel's sanitizers can report: each is given one mistake of its kind and must name it. This test runs with make test DEBUG=san only."""

from pathlib import Path

import pytest
import texts
from guest import run
from machine import Machine

SECONDS = 120
REPORTS = texts.rows(Path(__file__).with_name("san-reports.txt"), r"(\S+) +(.+)")


@pytest.mark.san
@pytest.mark.parametrize("payload, report", REPORTS)
def test_mistake(kernel, payload, report):
    outcome = run(Machine("pvh", 2, "512M", cmdline=f"payload=san-{payload}"), kernel, SECONDS)
    outcome.ended("crash").says(f"PANIC on CPU 0: {report}", r"[0-9a-f]{16}  payload_sanitizers[\w.]*\+0x")
