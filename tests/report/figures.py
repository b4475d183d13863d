"""The figures of tests/bench/counts, the file that keeps them, and the comparison. tests/README.md says what the columns mean.

Figures are for one operation; one that does not apply is "-". Functions that cost next to nothing are left out.
"""

from dataclasses import dataclass, field

BOUND = 0.02  # a figure that rises by more than this share fails
# A function is left out of the file below all three: a share of the operation's hosted instructions, and misses and locked ones of its own.
SMALLEST, LEAST_MISSES, LEAST_LOCKED = 0.01, 0.1, 0.002
# So many misses more in a whole step, of all its operations, are no rise: two variables may share a line or not, as the linker has it.
MISSES_MOVE = 2
KINDS = ("insns", "rounds", "ipis", "misses", "locked")
UNIT = {"insns": "instructions", "rounds": "rounds", "ipis": "messages", "misses": "misses of the data cache", "locked": "locked instructions"}
NAMED = 4  # functions that a complaint names at most
OF_TOOLS = ("insns", "misses", "locked")  # kinds that another compiler or another model changes
OF_PART = {"kernel": ("insns", "rounds", "ipis"), "hosted": ("misses", "locked")}  # the part that measures a kind


@dataclass
class Cost:
    """Instructions, misses and locked instructions of one function in one operation, hosted."""

    insns: float = 0
    misses: float = 0
    locked: float = 0


@dataclass
class Figures:
    insns: float | None = None
    rounds: float | None = None
    ipis: float | None = None
    misses: float | None = None
    locked: float | None = None
    functions: dict = field(default_factory=dict)
    times: int = 1  # operations of the step that was measured; not in the file


def number(value):
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def cost_text(name, cost):
    values = [number(cost.insns), number(cost.misses), number(cost.locked)]
    while values[-1] == "0":
        values.pop()
    return f"{name}={','.join(values)}" if values else ""


def line_of(op, figures):
    all_of_it = sum(cost.insns for cost in figures.functions.values())
    kept = {
        name: cost for name, cost in figures.functions.items()
        if cost.insns >= SMALLEST * all_of_it or cost.misses >= LEAST_MISSES or cost.locked >= LEAST_LOCKED
    }
    ordered = sorted(kept, key=lambda name: (-kept[name].insns, name))
    columns = "".join(f"{number(getattr(figures, kind)):>13}" for kind in KINDS)
    return f"{op:<30}{columns}  {' '.join(cost_text(name, kept[name]) for name in ordered)}".rstrip()


def parse(text):
    """({part: its tools}, {op: Figures}) of the file's text."""
    tools, found = {}, {}
    for line in text.splitlines():
        if line.startswith("tools "):
            part, _, tools_of_part = line.removeprefix("tools ").partition(": ")
            tools[part] = tools_of_part
        elif line and not line.startswith("#"):
            op, *words = line.split()
            values = [None if word == "-" else float(word) for word in words[: len(KINDS)]]
            functions = {}
            for word in words[len(KINDS) :]:
                name, _, costs = word.rpartition("=")
                functions[name] = Cost(*map(float, costs.split(",")))
            found[op] = Figures(*values, functions=functions)
    return tools, found


def format_file(head, tools, figures):
    names = "".join(f"{kind.upper():>13}" for kind in KINDS)
    tool_lines = (f"tools {part}: {tools[part]}" for part in tools)
    lines = [*head, *tool_lines, f"#{'OP':<29}{names}  FUNCTION=INSNS,MISSES,LOCKED ...", *(line_of(op, figures[op]) for op in figures)]
    return "\n".join(lines) + "\n"


# ---- the comparison ----


def rose(kind, was, now, times):
    """Whether a figure rose by more than its bound. One that does not apply does not rise."""
    if was is None or now is None:
        return False
    rounding = 0.0005 + (MISSES_MOVE / times if kind == "misses" else 0)
    return now > was * (1 + BOUND) + rounding


def most_before(kind, was, name):
    """What a function cost before; for one that the file leaves out, the most that it can have cost."""
    if name in was.functions:
        return getattr(was.functions[name], kind)
    left_out = {"insns": SMALLEST * sum(cost.insns for cost in was.functions.values()), "misses": LEAST_MISSES, "locked": LEAST_LOCKED}
    return left_out[kind]


def grown(kind, was, now):
    """The functions that grew most in this kind, with their growth."""
    growth = {name: getattr(cost, kind) - most_before(kind, was, name) for name, cost in now.functions.items()}
    growth = {name: more for name, more in growth.items() if more > LEAST_LOCKED}
    return [(name, growth[name]) for name in sorted(growth, key=growth.get, reverse=True)[:NAMED]]


def culprits(kind, was, now):
    if kind not in OF_TOOLS or not now.functions or not was.functions:
        return ""
    named = grown(kind, was, now)
    if named:
        return ": " + ", ".join(f"{name}() +{number(growth)}" for name, growth in named)
    return ": no function of the hosted machine grew, so look in arch/x86_64, which the hosted machine lacks"


def change(was, now):
    text = f"{number(was)} -> {number(now)}"
    return f"{text} (+{(now / was - 1) * 100:.1f}%)" if was else text


def complaints(accepted, measured, kinds=KINDS):
    """One line for each figure that rose and for each operation that only one of the two knows."""
    found = []
    for op, now in measured.items():
        was = accepted.get(op)
        if was is None:
            found.append(f"{op}: has no figures yet")
            continue
        for kind in kinds:
            before, after = getattr(was, kind), getattr(now, kind)
            if rose(kind, before, after, now.times):
                found.append(f"{op}: {change(before, after)} {UNIT[kind]}{culprits(kind, was, now)}")
    expected = (op for op, was in accepted.items() if any(getattr(was, kind) is not None for kind in kinds))
    return found + [f"{op}: was not measured" for op in expected if op not in measured]


def falls(accepted, measured, kinds=KINDS):
    """One line for each figure that fell by more than its bound: the file should have it, or it may creep back."""
    return [
        f"{op}: {number(getattr(accepted[op], kind))} -> {number(getattr(now, kind))} {UNIT[kind]}"
        for op, now in measured.items() if op in accepted for kind in kinds if rose(kind, getattr(now, kind), getattr(accepted[op], kind), now.times)
    ]
