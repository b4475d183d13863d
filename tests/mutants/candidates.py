"""The mutants that `make test WHAT=mutants-random` may draw: lines of code, the rules that leave lines out, and the draw.

A line of code is drawn first, and then one mutant of it, so each line has the same chance. The draw sorts by hashes of the seed and the
texts. It therefore stays the same when other lines move or change.
"""

import contextlib
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from change import FUNCTION
from keys import digest

FOLDERS = ("mm", "kernel", "arch/x86_64", "boot")
TOOL, VERSION = "universalmutator", "1.14.1"
TOOL_RULES = ("universal.rules", "c_like.rules", "c.rules")

MESSAGE = re.compile(r"^\s*(?:print|printk|print_\w+|(?!text_)\w+_print)\(")
PANIC = re.compile(r"^\s*(?:panic|ASSERT|context_assert(?:_for)?)\(")
PRINTER = re.compile(r"^[\w \t*]*\b(?:print_\w+|(?!text_)\w+_print)\(")
INSTRUCTION = re.compile(r"^\s+[a-z]\w*\b(?!:)")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')


@dataclass(frozen=True)
class Candidate:
    source: object  # the Source of its file
    line: int  # from 1
    function: str  # that contains the line, or ""
    before: str  # the line without comments
    after: str

    @property
    def path(self):
        return self.source.path

    @property
    def key(self):
        """What equivalent.txt names a mutant by: it survives that lines move. The rows, from which marks are copied, have no tabs."""
        return self.path, self.function, self.before.strip().replace("\t", " "), self.after.strip().replace("\t", " ")


def without_comments(text):
    """The text with blanks in place of comments; lines stay where they are."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m[0].startswith("/") else m[0], text)


def end_of_call(lines, first):
    """The index of the line in which the parentheses that line `first` opens are closed."""
    depth = 0
    for at in range(first, len(lines)):
        bare = STRING.sub('""', lines[at])
        depth += bare.count("(") - bare.count(")")
        if depth <= 0:
            return at
    return len(lines) - 1


def condition_before(lines, at):
    """The indices of an `if` without braces that leads to line `at` alone, or nothing."""
    first = at - 1
    while first >= 0 and lines[first].strip() and not re.search(r"[;{}]\s*$", lines[first]):
        if re.match(r"\s*(else )?if \(", lines[first]):
            return range(first, at) if end_of_call(lines, first) == at - 1 else ()
        first -= 1
    return ()


def left_out(path, lines):
    """The indices of the lines that may not be drawn: braces alone, the preprocessor, commands of the monitor, functions and calls that only
    print, and checks of what cannot happen, with the `if` that leads to nothing else (test_context.py has those of contexts); in headers all
    but functions, in assembly all but instructions. `lines` is the text without comments."""
    if path.endswith("_cmd.c"):
        return set(range(len(lines)))
    if path.endswith(".S"):
        return {at for at, line in enumerate(lines) if not INSTRUCTION.match(line)}
    out = {at for at, line in enumerate(lines) if not re.search(r"\w", line)}
    directive = printer = False
    for at, line in enumerate(lines):
        if directive or line.startswith("#"):
            out.add(at)
            directive = line.rstrip().endswith("\\")
        if PRINTER.match(line) and not line.rstrip().endswith(";"):
            printer = True
        if printer:
            out.add(at)
            printer = line.rstrip() != "}"
        if MESSAGE.match(line):
            out.update(range(at, end_of_call(lines, at) + 1))
        if PANIC.match(line):
            out.update([*condition_before(lines, at), *range(at, end_of_call(lines, at) + 1)])
    return out if path.endswith(".c") else out | set(range(len(lines))).difference(*spans_of(lines))


def spans_of(lines):
    """The ranges of the indices of the lines of each function."""
    text = "\n".join(lines)
    return [range(text.count("\n", 0, match.start()), text.count("\n", 0, match.end()) + 1) for match in FUNCTION.finditer(text)]


def function_at(lines, at):
    for above in range(at, -1, -1):
        if above < at and re.match(r"\S.*;\s*$|\}", lines[above]):
            return ""
        match = re.match(r"(?=[A-Za-z_])[\w \t*]*?\b(\w+)\(|(\w+):$", lines[above])
        if match:
            return match[1] or match[2]
    return ""


class Source:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = without_comments(text).split("\n")
        self.left_out, self.spans = left_out(path, self.lines), spans_of(self.lines)

    @cached_property
    def mutants(self):
        """{number of a line: the tool's mutants of it}"""
        from universalmutator import mutator  # fetched: see fetch_tool()

        mutants = {}
        rules = TOOL_RULES[:1] if self.path.endswith(".S") else TOOL_RULES
        with contextlib.redirect_stdout(io.StringIO()):
            found = mutator.mutants_regexp([line.rstrip() + "\n" for line in self.lines], list(rules), ignorePatterns=[])
        for number, after, *_ in found:
            mutants.setdefault(number, []).append(after.rstrip("\n").replace("\n", " "))
        for number in range(1, len(self.lines) + 1) if self.path.endswith(".S") else ():
            mutants.setdefault(number, []).append("\tnop")
        return mutants

    def span(self, number):
        """The numbers of the lines of the function that contains this line; of the file, outside functions."""
        return next((range(span.start + 1, span.stop + 1) for span in self.spans if number - 1 in span), range(1, len(self.lines) + 1))

    def drawn(self, seed, number):
        """The mutant of a line that the seed chooses, or None if the tool has none for it that changes more than a string's text."""
        before = self.lines[number - 1].rstrip()
        bare = STRING.sub('""', before)
        real = [after for after in self.mutants.get(number, []) if STRING.sub('""', after) != bare]
        if not real:
            return None
        after = min(real, key=lambda after: digest(seed, self.path, before, after))
        return Candidate(self, number, function_at(self.lines, number - 1), before, after)

    def broken(self, candidate):
        """The text of the file with the mutant in it. A comment that goes on below the line stays."""
        lines = self.text.split("\n")
        old = lines[candidate.line - 1]
        opened = old.rfind("/*")
        rest = " " + old[opened:] if opened > old.rfind("*/") and not self.lines[candidate.line - 1][opened:].strip() else ""
        lines[candidate.line - 1] = candidate.after + rest
        return "\n".join(lines)


def sources(root):
    """[Source]: all of a tree."""
    paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.[chS]"))
    return [Source(str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in paths]


def drawn(root, seed):
    """Yields the mutants of a tree in the order of the seed."""
    keys = []
    for source in sources(root):
        seen = Counter()
        for number, line in enumerate(source.lines, 1):
            if number - 1 not in source.left_out:
                seen[line] += 1
                keys.append((digest(seed, source.path, line, seen[line]), source, number))
    for _, source, number in sorted(keys, key=lambda key: key[0]):
        if candidate := source.drawn(seed, number):
            yield candidate


def fetch_tool(fetcher):
    """Make the tool importable. Missing (tests/programs/fetch.py) if it cannot be had."""
    sys.path.append(str(fetcher.wheel(TOOL, VERSION)))


def read_marks(path):
    """{key of a Candidate: reason} from equivalent.txt, whose head describes its form."""
    marks = {}
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        match = re.match(r"(\S+) ?(\w*)\n- (.*)\n\+ ?(.*)\n(?=\S)", "\n".join(lines))
        if not match:
            raise SystemExit(f"{path}: a mark needs a file and function, the line, the mutant, and the reason: {lines[0]}")
        marks[match[1], match[2], match[3].strip().replace("\t", " "), match[4].strip().replace("\t", " ")] = " ".join(lines[3:])
    return marks
