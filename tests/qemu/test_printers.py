"""The output of gdb for the structures that a person looks at first."""

import re
import subprocess
from pathlib import Path

PRINTERS = Path(__file__).with_name("printers.py")
SHOWN = {
    "boot_percpu": r"CPU 0 on node 0: running, TLB generation 0, 0 locks held",
    "*(struct page *)&mm_kernel": r"page: no flags, order 0, zone 0, refcount 0",
    "*(struct block *)&mm_kernel": r"block: BLOCK_UNOPENED, no flags, order 0, type 0, zone 0, tag 0",
    "*(struct zone *)&mm_kernel": r"zone 0 \(node 0, ZONE_DMA32\), frames 0 to 0: 0 of RAM, 0 free, .*0 reserved",
    "boot_percpu.work": r"\{.*claimed = 1",
}


def test_each_is_one_line(kernel):
    prints = [word for expression in SHOWN for word in ("-ex", f"print {expression}")]
    argv = ["gdb", "-batch", "-nx", str(kernel), "-x", str(PRINTERS), *prints]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    for number, expected in enumerate(SHOWN.values(), 1):
        assert re.search(rf"^\${number} = {expected}", done.stdout, re.M), done.stdout + done.stderr
