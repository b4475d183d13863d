#!/usr/bin/env python3
"""`make lint`: compilers and checkers, which run nothing, over mm/ kernel/ arch/ boot/ and tests/host.

    gcc        -fanalyzer: paths through a file on which a pointer is NULL or memory leaks
    stack      frames (-Wframe-larger-than) and the longest chain of direct calls (-fcallgraph-info) against a CPU's stack
    tidy       clang-tidy: the clang analyzer and checks for mistakes (tests/lint/clang-tidy.yaml)
    cppcheck   cppcheck (tests/lint/cppcheck.txt)
    sparse     a function that returns with a lock held, interrupts off or inside the allocator on some path and does not say so
               (__acquires(), __releases()), and device registers read as if they were memory (__iomem): kernel/lib/types.h

Each tool must first report the mistakes that canary.c contains for it. A report that is no mistake is silenced beside the code with a
reason, or in the tool's file in this folder for all code.

The flags are the flags of the build, from the environment: KERNEL_CFLAGS, HOST_CFLAGS, CC.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KERNEL = ("mm", "kernel", "arch/x86_64", "boot")
HOST = ("tests/host",)
CANARY = "tests/lint/canary.c"
STACK_BYTES = 16384  # arch/x86_64: AP_STACK_SIZE, BOOT_STACK_SIZE
# The bytes that a chain of direct calls may take. The longest begins with a page fault, on the stack of a program that touches a huge
# mapping. The rest of the stack is left for the program and for functions called through pointers.
CHAIN_MOST = STACK_BYTES * 3 // 4
GCC_ONLY = re.compile(r"^-(fno-stack-clash|mstack-protector|ffile-prefix-map|Wframe-larger-than|fno-delete|O\d|g$)")


def flags(kind):
    return [word for word in os.environ[f"{kind}_CFLAGS"].split() if word != "-Werror"]


def sources(folders):
    return [str(p.relative_to(ROOT)) for folder in folders for p in sorted((ROOT / folder).rglob("*.c"))]


def everything():
    return [(f, "KERNEL") for f in sources(KERNEL)] + [(f, "HOST") for f in sources(HOST)]


# If gcc is ccache, it returns a stored object without the call graph that must lie beside the object.
ENVIRONMENT = {**os.environ, "CCACHE_DISABLE": "1"}


def run(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    return done.returncode, done.stdout + done.stderr


def reports(text):
    """Lines that name a file, a line and a complaint; each line once."""
    return sorted({line for line in text.splitlines() if re.search(r"^\S+:\d+:.*(warning|error|portability|performance): ", line)})


def in_parallel(one, files):
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return "\n".join(pool.map(one, files))


def each(argv):
    """A tool that is run for each file: argv(name, its flags, kind, folder)."""

    def tool(files, folder):
        def one(file):
            name, kind = file
            return run(argv(name, flags(kind), kind, folder))[1]

        return [line.replace(f"{ROOT}/", "") for line in reports(in_parallel(one, files))]

    return tool


# gcc 12 takes a pointer for lost if it is in a structure that is returned by value or stored in an array.
NOT_HOST = ["-Wno-analyzer-malloc-leak"]


def gcc(name, words, kind, folder):
    """At -O1, because deeper inlining removes paths that the analyzer needs."""
    extra = NOT_HOST if kind == "HOST" else []
    return [os.environ["CC"], *words, "-O1", "-fanalyzer", *extra, "-c", name, "-o", folder + "/" + name.replace("/", "-") + ".o"]


def tidy(name, words, _kind, _folder):
    taken = [word for word in words if not GCC_ONLY.match(word)]
    return ["clang-tidy", "--quiet", f"--config-file={HERE}/clang-tidy.yaml", name, "--", *taken]


# Casts here cut values on purpose, and a mutex of pthread.h is initialised with a plain zero for a pointer.
SPARSE = ["-Wno-cast-truncate", "-Wno-non-pointer-null"]
# What sparse cannot read: a builtin, and a text of 16 bits a character in boot/efi.
UNKNOWN = ["-D__builtin_ia32_rdtsc()=0ULL"]
WIDE = ["-Du=(unsigned short *)"]


def sparse(name, words, _kind, _folder):
    """With the full path for -I., or a header that lies beside the file is another one than the same header elsewhere."""
    taken = [f"-I{ROOT}" if word == "-I." else word for word in words]
    return ["sparse", *SPARSE, *UNKNOWN, *(WIDE if name.startswith("boot/efi/") else []), *taken, name]


# Version 2.10 cannot read MIN(), MAX() and MASK() in an initialiser, and leaves the file; the other tools read it.
UNREAD = re.compile(r"\[(internalAstError|syntaxError)\]$")


def cppcheck(files, folder):
    del folder
    common = ["cppcheck", "-q", f"-j{os.cpu_count() or 1}", "--enable=warning,performance,portability", "--inline-suppr", "--std=c11",
              "--platform=unix64", f"--suppressions-list={HERE}/cppcheck.txt"]
    text = ""
    for kind in ("KERNEL", "HOST"):
        chosen = [name for name, of in files if of == kind]
        if chosen:
            include = [word for word in flags(kind) if word.startswith(("-I", "-D"))]
            text += run([*common, *include, *chosen])[1]
    found = reports(text)
    unread = [line for line in found if UNREAD.search(line)]
    if unread:
        print("  cppcheck  cannot read " + ", ".join(sorted({line.split(":")[0] for line in unread})))
    return [line for line in found if line not in unread]


# ---- stacks ----


class Graph:
    """Functions, their frames and their direct calls, from gcc's -fcallgraph-info=su: one file for each source."""

    def __init__(self):
        self.frame, self.calls, self.dynamic = {}, {}, []

    def read(self, text):
        for title, label in re.findall(r'node: \{ title: "([^"]+)" label: "([^"]+)"', text):
            size = re.search(r"\\n(\d+) bytes \(([^)]*)\)", label)
            if size:
                self.frame[title] = int(size[1])
                if size[2] == "dynamic":
                    self.dynamic.append(title)
        for source, target in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text):
            self.calls.setdefault(source, set()).add(target)

    def deepest(self):
        """(bytes, names) of the longest chain. A call back into the chain ends it, because the code that recurses bounds its recursion."""
        known, bit = {}, {name: 1 << number for number, name in enumerate(self.frame)}
        calls = {name: [callee for callee in self.calls.get(name, ()) if callee in bit] for name in bit}
        reached, before = dict(bit), {}
        while reached != before:
            before = dict(reached)
            for name in bit:
                for callee in calls[name]:
                    reached[name] |= reached[callee]

        def depth(name, cycle):
            """The longest chain from a function on. `cycle`: those before it that it may call again."""
            if not cycle and name in known:
                return known[name]
            best = (0, [])
            for callee in calls[name]:
                if callee not in cycle and callee != name:
                    best = max(best, depth(callee, cycle | {name} if reached[callee] & bit[name] else frozenset()))
            result = (self.frame[name] + 8 + best[0], [name, *best[1]])
            if not cycle:
                known[name] = result
            return result

        sys.setrecursionlimit(10000)
        return max((depth(name, frozenset()) for name in self.frame), default=(0, []))


def stack(files, folder):
    graph = Graph()

    def one(file):
        name, kind = file
        out = Path(folder) / (name.replace("/", "_") + ".o")
        found = run([os.environ["CC"], *flags(kind), "-fcallgraph-info=su", "-c", name, "-o", str(out)])[1]
        info = out.with_suffix(".ci")
        return found + ("\n" + info.read_text() if info.exists() else "")

    text = in_parallel(one, [(name, kind) for name, kind in files if kind == "KERNEL"])
    graph.read(text)
    found = reports(text)
    size, chain = graph.deepest()
    names = " > ".join(name.split(":")[-1] for name in chain)
    print(f"  stack     largest frame {max(graph.frame.values())}, longest chain {size} of {STACK_BYTES} bytes: {names}")
    if size > CHAIN_MOST:
        found.append(f"stack:0: error: a chain of calls takes {size} bytes of stack, more than {CHAIN_MOST}: {names}")
    found += [f"{name}: error: its frame has no bound" for name in graph.dynamic]
    return found


COLUMNS = 100


def too_long(name):
    """Lines over COLUMNS, also in comments, which clang-format leaves alone because they contain tables."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    wide = [(number, len(line.expandtabs(8))) for number, line in enumerate(lines, 1)]
    return [f"{name}:{number}: error: {width} columns, more than {COLUMNS}" for number, width in wide if width > COLUMNS]


TOKEN = re.compile(r"/\*[\s\S]*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'")


def nested(opening, closing):
    """A pattern for what stands between two such brackets, with others inside, eight deep."""
    other = rf"[^{opening}{closing}]*"
    inside = other
    for _ in range(8):
        inside = rf"{other}(?:\{opening}{inside}\{closing}{other})*"
    return rf"\{opening}{inside}\{closing}"


PARENTHESES, BRACES = nested("(", ")"), nested("{", "}")
CONDITION = re.compile(rf"\b(if|while|for) ?({PARENTHESES})")
LOOP = re.compile(rf"(?<!\}} )\bwhile ?({PARENTHESES})(?=\s*({BRACES}|(?:(?:for|if) .*\n)*.*))")
DO_LOOP = re.compile(rf"\bdo (?=({BRACES}) while ?({PARENTHESES}))")


def bare(name):
    """The text of a file without comments and strings; lines stay where they are."""
    return TOKEN.sub(lambda token: " " + "\n" * token[0].count("\n"), (ROOT / name).read_text(encoding="utf-8"))


def found(name, text, places, says):
    return [f"{name}:{text.count(chr(10), 0, at) + 1}: error: {says}" for at in places]


def assigns(word, inside):
    """Whether a condition assigns; that of `for` is its second part. Statements in ({}) are passed over; an initialiser in braces names fields."""
    inside = re.sub(r"\{[^{}]*\}", "", re.sub(r"\(\{.*?\}\)", "", inside, flags=re.S))
    parts = inside.split(";")
    asked = inside if word != "for" else parts[1] if len(parts) == 3 else ""
    return re.search(r"(?<![=!<>])=(?!=)|<<=|>>=", asked)


def assigned(name):
    """Conditions that assign: a reader looks there for a question."""
    text = bare(name)
    return found(name, text, [m.start() for m in CONDITION.finditer(text) if assigns(m[1], m[2])], "a condition assigns")


LOOKS = re.compile(r"\b(atomic_load_\w+|spin_trylock|work_done)\(")
WORKS = re.compile(r"\b(?!atomic_load|if\b|for\b|while\b|sizeof\b)\w+\(|\+\+")


def starving(name):
    """Loops that wait for another CPU and do nothing else, not even cpu_relax() or wait_spin(). Where QEMU runs one CPU at a time, such a
    loop uses up its turn."""
    text = bare(name)
    loops = [(m.start(), m[1], m[2]) for m in LOOP.finditer(text)] + [(m.start(), m[2], m[1]) for m in DO_LOOP.finditer(text)]
    places = [at for at, condition, body in loops if LOOKS.search(condition) and not WORKS.search(body)]
    return found(name, text, places, "a loop waits for another CPU without cpu_relax() or wait_spin()")


def style(files, folder):
    """Checks every C file: lines are broken as .clang-format says, no line is too long, no condition of the kernel assigns, and no loop
    waits without a pause."""
    del folder
    names = [name for name, _ in files]
    kernel = waiting = names
    if names != [CANARY]:
        names = run(["git", "ls-files", "*.c", "*.h"])[1].split()
        names.remove(CANARY)
        kernel = [name for name in names if name.startswith(("mm/", "kernel/", "arch/", "boot/"))]
        waiting = kernel + [name for name in names if name.startswith(("tests/kernel/", "tests/bench/"))]

    def one(name):
        return run(["clang-format", "--dry-run", name])[1].replace(f"{ROOT}/", "")

    own = [line for name in names for line in too_long(name)] + [line for name in kernel for line in assigned(name)]
    own += [line for name in waiting for line in starving(name)]
    return reports(in_parallel(one, names)) + own


TOOLS = {"style": style, "gcc": each(gcc), "stack": stack, "tidy": each(tidy), "cppcheck": cppcheck, "sparse": each(sparse)}

# The reports on the canary that each tool with several checks must make.
CANARIES = {
    "style": ("clang-formatted", "columns, more than", "a condition assigns", "a loop waits"),
    "gcc": ("-Wanalyzer-",),
    "stack": ("is larger than", "a chain of calls", "endless: error: its frame has no bound"),
    "sparse": ("'left_locked'", "different address spaces", "dereference of noderef"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", nargs="*", help=f"of {', '.join(TOOLS)}; all if none is named")
    chosen, bad = parser.parse_args().tools or list(TOOLS), 0
    if unknown := set(chosen) - set(TOOLS):
        parser.error(f"no tool is called {', '.join(sorted(unknown))}")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            said = TOOLS[name]([(CANARY, "KERNEL")], folder)
            silent = [words for words in CANARIES.get(name, ("",)) if not any(words in line for line in said)]
            if silent:
                print(f"lint: {name} did not report a mistake in {CANARY}: {', '.join(silent) or 'any'}")
                return 1
            found = TOOLS[name](everything(), folder)
        print("".join(f"{line}\n" for line in found) + f"  {name:9} {len(everything())} files, {len(found)} reports", flush=True)
        bad += len(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
