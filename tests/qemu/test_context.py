"""Contexts of calls (kernel/core/context.h): a call from a wrong context ends the machine with a message. The tests compare the comments of
headers with the assertions of the code, and run a kernel of the ordinary build with programs that break the rule."""

import re
from pathlib import Path

import pytest
from guest import run
from machine import Machine

ROOT = Path(__file__).resolve().parents[2]
HEADERS = {"mm/mm.h": "mm", "mm/pools.h": "mm", "mm/hugetlb/pool.h": "mm", "arch/x86_64/include/arch/irq.h": "arch/x86_64"}

ASSERTED = {
    "ordinary": {"context_assert(CONTEXT_ORDINARY);"},
    "ordinary; locked with PAGE_NOFLUSH": {
        "context_assert(request & PAGE_NOFLUSH ? CONTEXT_LOCKED : CONTEXT_ORDINARY);",
        "request | PAGE_OUTERMOST",  # page_alloc(): the same assertion, off its fast path
    },
    "handler": set(),
    "any": set(),
}


def context_in(comment):
    found = re.search(r"Context: ([^.(,]+?) ?[.(,]", re.sub(r"\n \* ?", " ", comment))
    return found and found[1]


def calls_of(header):
    """Each declared function, with the context that the comment before it names, or else the first comment of the header."""
    text = (ROOT / header).read_text(encoding="utf-8")
    default = context_in(text[: text.index("*/") + 2])
    named = default
    for token in re.finditer(r"^/\*.*?\*/|^(?!typedef)[a-z][^\n;{()=]*?\**(\w+)\([^;{]*\)[^;{]*;", text, re.M | re.S):
        if token[1]:
            yield token[1], named
        else:
            named = context_in(token[0]) or default


def body_of(name, folder):
    for path in sorted((ROOT / folder).rglob("*.c")):
        text = path.read_text(encoding="utf-8")
        found = re.search(rf"^(?!static)[a-z][^\n;]*\b{name}\([^;{{]*\)\n{{\n(.*?)^}}", text, re.M | re.S)
        if found:
            return found[1]
    return None


@pytest.mark.parametrize("header", HEADERS)
def test_each_call_asserts_the_context_that_its_header_names(header):
    calls = list(calls_of(header))
    assert len(calls) >= 2, "the declarations were not found"
    for name, context in calls:
        assert context in ASSERTED, f"{header}: {name}() names no context, or an unknown one: {context}"
        body = body_of(name, HEADERS[header])
        assert body is not None, f"{header}: {name}() is defined nowhere in {HEADERS[header]}"
        found = re.findall(r"context_assert\(.*\);|request \| PAGE_OUTERMOST", body)
        assert len(found) == bool(ASSERTED[context]) and set(found) <= ASSERTED[context], f"{name}() is for {context}: {found}"


ENDS = {  # the other calls with a lock held: kernel.context.*_with_a_lock_held_is_caught, hosted
    "alloc-in-interrupt": "page_alloc() in an interrupt handler",
    "alloc-noflush-in-interrupt": "page_alloc() in an interrupt handler",
    "free-in-interrupt": "page_free() in an interrupt handler",
    "put-in-interrupt": "page_put() in an interrupt handler",
    "touch-in-interrupt": "first touch of a page of a huge mapping in an interrupt handler",
    "alloc-with-lock": "page_alloc() with a lock held (1)",
    "touch-with-lock": "first touch of a page of a huge mapping with a lock held (1)",
}


@pytest.mark.parametrize("payload", ENDS)
def test_a_kernel_ends_and_says_why(payload, kernel):
    outcome = run(Machine("pvh", 2, "256M", cmdline=f"payload={payload}"), kernel)
    outcome.ended("crash").says(f"PANIC on CPU 0: .*{re.escape(ENDS[payload])}")
