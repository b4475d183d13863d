"""The kernel's sanitizers can report: each is given one mistake of its kind and must name it. This test runs with make test DEBUG=san only."""

import pytest
from guest import run
from machine import Machine

SECONDS = 120


@pytest.mark.san
@pytest.mark.parametrize("payload, report", [
    ("shift", r"UBSAN: tests/bench/san_broken\.c:\d+:\d+: a shift by too many bits"),
    ("bounds", r"UBSAN: tests/bench/san_broken\.c:\d+:\d+: an index outside of its array"),
    ("free-frame", r"KASAN: store of 8 bytes at [0-9a-f]{16}, in a free frame"),
    ("free-tail", r"KASAN: store of 8 bytes at [0-9a-f]{12}[5d]000, in a free frame"),
    ("free-chunk", r"KASAN: store of 8 bytes at [0-9a-f]{16}, in a free frame"),
    ("free-huge", r"KASAN: store of 8 bytes at [0-9a-f]{16}, in a huge page that a CPU holds free"),
    ("free-pool", r"KASAN: store of 8 bytes at [0-9a-f]{16}, in a free frame"),
    ("clear-free", r"KASAN: store of 4096 bytes at [0-9a-f]{16}, in a free frame"),
    ("clear-past-end", r"KASAN: store of 8192 bytes at [0-9a-f]{16}, in a free frame"),
    ("clear-huge", r"KASAN: store of 2097152 bytes at [0-9a-f]{16}, in a huge page that a CPU holds free"),
    ("free-meta", r"KASAN: load of 4 bytes at [0-9a-f]{16}, in a frame that metadata memory does not use"),
    ("gated-meta", r"KASAN: store of 8 bytes at [0-9a-f]{16}, in a frame that metadata memory does not use"),
    ("dead-variable", r"KASAN: store of 8 bytes at [0-9a-f]{16}, on this CPU's stack below all that is alive"),
])  # fmt: skip
def test_mistake(kernel, payload, report):
    outcome = run(Machine("pvh", 2, "512M", cmdline=f"payload=san-{payload}"), kernel, SECONDS)
    outcome.ended("crash").says(f"PANIC on CPU 0: {report}", r"[0-9a-f]{16}  payload_sanitizers[\w.]*\+0x")
