"""What a mutant changes: below its header, `In:` and runs of lines that begin with -, + or a blank (README.md). Each run is one change.

`In:` names a function, or a file and a function where several have that name, or a file for all of it. What no longer fits says so.
"""

import re
from functools import cache
from pathlib import Path

FOLDERS = ("boot", "arch", "kernel", "mm", "tests/host", "tests/kernel")
WORD = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|\w+|\S""", re.S)
PLAIN = re.compile(r"\w+|\S")  # files that have no comments of C
# A definition begins in the first column with its name before "(" and ends with "}" in the first column.
FUNCTION = re.compile(r"^(?:[A-Za-z_][^\n;={}]*?[ *])?((?!__attribute__)\w+)\([^;{}]*\)[^;{}()=]*\n?\{.*?^\}", re.S | re.M)


class DoesNotFit(Exception):
    """The code that the mutant changes is not there, or more than once."""


def words(text, pattern=WORD):
    """[(word, begin, end)], without comments."""
    return [(m[0], m.start(), m.end()) for m in pattern.finditer(text) if not m[0].startswith(("/*", "//"))]


@cache
def functions(text):
    found = {}
    for match in FUNCTION.finditer(text):
        found.setdefault(match[1], []).append(match.span())
    return found


@cache
def defined(root):
    """{name of a function: the files that define it}."""
    found = {}
    for path in (path for folder in FOLDERS for path in (root / folder).rglob("*.[ch]")):
        for name in functions(path.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(path)
    return found


def file_of(root, where):
    """The file that `In:` names, and the function in it, or None for the whole file."""
    path, _, name = where.rpartition(" ")
    if not path and not name.isidentifier() or name == "Makefile":
        return root / name, None
    files = [root / path] if path else defined(root).get(name, [])
    if len(files) != 1:
        raise DoesNotFit(f"{where}: defined in {len(files)} files")
    return files[0], name


def span(text, name, where):
    if name is None:
        return 0, len(text)
    found = functions(text).get(name, [])
    if len(found) != 1:
        raise DoesNotFit(f"{where}: defined {len(found)} times")
    return found[0]


def parse(text):
    """[(where, old, new)] of a mutant's text."""
    where, old, new, changes = None, [], [], []

    def end():
        if old or new:
            changes.append((where, "\n".join(old), "\n".join(new)))
        old.clear()
        new.clear()

    for line in [*text.splitlines(), ""]:
        if line.startswith("In: "):
            end()
            where = line[4:].strip()
        elif where and line[:1] in ("-", "+", " ") and line:
            if line[0] != "+":
                old.append(line[1:])
            if line[0] != "-":
                new.append(line[1:])
        else:
            end()
    return changes


def found_at(text, name, old, where):
    """(begin, end) of the old words in that function of the text, or in all of it."""
    begin, end = span(text, name, where)
    pattern = WORD if name or where.endswith((".c", ".h", ".S", ".pml", ".ld")) else PLAIN
    wanted, there = [word for word, _, _ in words(old, pattern)], words(text[begin:end], pattern)
    bare = [word for word, _, _ in there]
    found = [at for at in range(len(bare) - len(wanted) + 1) if bare[at : at + len(wanted)] == wanted]
    if not wanted or len(found) != 1:
        raise DoesNotFit(f"{where}: found {len(found) if wanted else 'no'} times: {' '.join(wanted)}")
    return there[found[0]][1] + begin, there[found[0] + len(wanted) - 1][2] + begin


def spans(root, path, leave_out=""):
    """({file: text}, {file: [(begin, end, new)]}) of what a mutant changes, but nothing below the folder `leave_out`."""
    texts, found = {}, {}
    for where, old, new in parse(Path(path).read_text(encoding="utf-8")):
        if leave_out and where.startswith(leave_out):
            continue
        file, name = file_of(Path(root), where)
        texts.setdefault(file, file.read_text(encoding="utf-8"))
        found.setdefault(file, []).append((*found_at(texts[file], name, old, where), new.strip()))
    return texts, found


def apply(root, path, leave_out=""):
    """Changes the tree, and returns {file: text before}. If anything does not fit, nothing is changed."""
    before, found = spans(root, path, leave_out)
    for file, text in before.items():
        for begin, end, new in sorted(found[file], reverse=True):
            text = text[:begin] + new + text[end:]
        file.write_text(text, encoding="utf-8")
    return before


def undo(before):
    for file, text in before.items():
        file.write_text(text, encoding="utf-8")


def files(root, path):
    return {str(file_of(root, where)[0].relative_to(root)) for where, _, _ in parse(Path(path).read_text(encoding="utf-8"))}
