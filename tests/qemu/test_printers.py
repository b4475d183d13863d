"""The output of gdb for the structures that a person looks at first."""

import re
import subprocess
from pathlib import Path

import pytest

PRINTERS = Path(__file__).with_name("printers.py")


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("boot_percpu", r"CPU 0 on node 0: running, TLB generation 0, 0 locks held"),
        ("*(struct page *)zeroes", r"page: no flags, order 0, zone 0, refcount 0"),
        ("*(struct block *)zeroes", r"block: BLOCK_UNOPENED, no flags, order 0, type 0, zone 0, tag 0"),
        ("*(struct zone *)zeroes", r"zone 0 \(node 0, ZONE_DMA32\), frames 0 to 0: 0 of RAM, 0 free, .*0 reserved"),
        ("boot_percpu.work", r"\{.*claimed = 1"),
    ],
)
def test_one_line(kernel, expression, expected):
    shown = expression.replace("zeroes", "&mm_kernel")
    argv = ["gdb", "-batch", "-nx", str(kernel), "-x", str(PRINTERS), "-ex", f"print {shown}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert re.search(rf"^\$1 = {expected}", done.stdout, re.M), done.stdout + done.stderr
