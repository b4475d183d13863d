"""Reads steps.txt, which lists the code that each step of a model stands for, and checks that the code agrees (README.md).

Comments and strings are left out, but not the instructions of __asm__.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ANY = "any"  # in the place of a model's name: the row belongs to every model
NO_CODE = "no code: "
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)


@dataclass(frozen=True)
class Row:
    models: tuple
    step: str
    file: str
    function: str
    phrases: tuple

    def __str__(self):
        return f"{', '.join(self.models)}: {self.step}: {self.file}: {self.function}"


@functools.cache
def bare(text):
    """The code without comments and with empty strings."""

    def token(match):
        if match[0].startswith("/"):
            return " "
        kept = match[0][0] == "'" or match.string[max(0, match.start() - 40) : match.start()].rstrip().endswith("__asm__ volatile(")
        return match[0] if kept else '""'

    return TOKEN.sub(token, text)


def words(text):
    return re.sub(r"(?<=[(]) ", "", re.sub(r"(?:\s|\\\n)+", " ", text)).strip()


def read(path=HERE / "steps.txt"):
    """([(models, step)], [Row]); a line that is none of the three kinds or a step without code ends the program."""
    steps, found, models, step, one = [], [], (), "", False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        head = re.fullmatch(r"(\w+(?:, \w+)*): (\S.*)", line)
        functions = re.fullmatch(r"\t([\w/]+\.[chS]): (\w+(?:, \w+)*)", line)
        if not line or line.startswith("#"):
            one = False
        elif head:
            models, step, one = tuple(head[1].split(", ")), head[2], False
            steps.append((models, step))
        elif functions and models:
            names = functions[2].split(", ")
            found += [Row(models, step, functions[1], name, ()) for name in names]
            one = len(names) == 1
        elif re.match(r"\t\t\S", line) and one:
            last = found.pop()
            found.append(Row(last.models, last.step, last.file, last.function, (*last.phrases, words(bare(line)))))
        else:
            raise SystemExit(f"{path}:{number}: neither a step, a function nor a phrase")
    empty = [step for _, step in steps if not step.startswith(NO_CODE) and not any(row.step == step for row in found)]
    if empty:
        raise SystemExit(f"{path}: no function: {', '.join(empty)}")
    return steps, found


@functools.cache
def rows():
    return read()[1]


def named(model):
    """Names of a model's steps in the table. A step in a row of several models may belong to another of them."""
    own = {name for models, step in read()[0] if models == (model,) for name in re.findall(r"(\w+)\(\)", step)}
    shared = {name for models, step in read()[0] if model in models for name in re.findall(r"(\w+)\(\)", step)}
    return own, shared


def closing(text, at):
    """The position after the bracket that closes the bracket at `at`."""
    depth = 0
    for match in re.finditer(r"[(){}]", text[at:]):
        depth += 1 if match[0] in "({" else -1
        if depth == 0:
            return at + match.end()
    return len(text)


def bodies(text, name, assembly):
    """The text of every definition of `name`: a function, a table, a macro, or the code after a label."""
    if assembly:
        return re.findall(rf"^{name}:(.*?)(?=^[A-Za-z_]\w*:|^\s*\.section\b|\Z)", text, re.M | re.S)
    found = re.findall(rf"^#define {name}\(((?:[^\n]*\\\n)*[^\n]*)", text, re.M)
    for match in re.finditer(rf"^(?![\s#}}])[^\n;={{]*?\b{name}\s*([(\[])", text, re.M):
        if match[1] == "[":
            opening = re.compile(r"[^\]]*\]\s*=\s*(?=\{)").match(text, match.end())
        else:
            opening = re.compile(r"\s*(?:__\w+\([^()]*\)\s*)*(?=\{)").match(text, closing(text, match.end() - 1))
        if opening:
            found.append(text[opening.end() : closing(text, opening.end())])
    return found


def bounded(phrase):
    """A pattern for the phrase that matches no part of a longer word."""
    return (r"(?<!\w)" if re.match(r"\w", phrase) else "") + re.escape(phrase) + (r"(?!\w)" if re.search(r"\w$", phrase) else "")


def difference(wanted, body):
    """"" if the phrases stand in the body in this order, each as often as here; else the first phrase that does not, in words."""
    pattern = "|".join(bounded(phrase) for phrase in sorted(set(wanted), key=len, reverse=True))
    found = re.findall(pattern, body)
    for n, phrase in enumerate(wanted):
        if found[n : n + 1] == [phrase]:
            continue
        after = f" after `{wanted[n - 1]}`" if n else ""
        if phrase not in found[n:]:
            return f"no `{phrase}`{after}"
        return f"`{phrase}` is not what comes next{after}, but `{found[n]}`"
    return f"`{found[len(wanted)]}` stands there once more" if len(found) > len(wanted) else ""


def complaint(root, row):
    path = Path(root) / row.file
    if not path.exists():
        return "no such file"
    found = bodies(bare(path.read_text(encoding="utf-8")), row.function, path.suffix == ".S")
    if len(found) != 1:
        return f"defined {len(found)} times"
    if not row.phrases:
        return ""
    if re.search(r"^\s*#", found[0], re.M):
        return "the preprocessor chooses what it does"
    return difference(row.phrases, words(found[0]))


def complaints(root, model=None):
    """The steps of a model, or of all models, with which the code under `root` does not agree: a line with step, function and phrase
    each."""
    chosen = [row for row in rows() if model is None or model in row.models or ANY in row.models]
    return [f"{row}: {wrong}" for row in chosen if (wrong := complaint(root, row))]
