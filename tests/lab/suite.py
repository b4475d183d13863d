"""The cases of $CASES on a machine of labgrid: see labgrid.yaml."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "qemu")]

from ktap import Ktap  # noqa: E402
from verdict import clean  # noqa: E402

PROMPT = "ashlar> "


def test_suite(target):
    target.activate(target.get_driver("PowerProtocol", activate=False))
    target.get_driver("PowerProtocol").on()
    console, ktap = target.get_driver("ConsoleProtocol"), Ktap()
    console.expect(PROMPT, timeout=300)
    console.sendline(f"test {os.environ.get('CASES', '*')}")
    _, before, _, _ = console.expect("\n" + PROMPT, timeout=7200)
    for line in before.decode("utf-8", "replace").splitlines():
        ktap.feed(clean(line))
    failed = [f"{case.name}: {case.detail}" for case in ktap.cases if case.outcome == "failed"]
    assert ktap.cases and not failed + ktap.problems(), "\n".join(failed + ktap.problems())
