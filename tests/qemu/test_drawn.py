"""Mutants that a seed draws (tests/mutants/candidates.py): the rules, the draw, and the marks of those that no test can notice."""

import sys

from machine import ROOT

sys.path[:0] = [str(ROOT / "tests/mutants")]
import candidates  # noqa: E402

SAMPLE = """\
/* A comment
 * of two lines. */
#define TWICE(x) \\
	((x) + (x))

static void print_it(int a)
{
	done(a);
}

int plus(int a, int b) /* behind code */
{
	if (a > 5 ||
	    b > 5)
		panic("too large: %d",
		      a);
	print("about to add "
	      "two numbers\\n");
	text_print(sink, "/* no comment */");
	return a + b;
}
"""


def drawable(path, text):
    rules = candidates.left_out(path, text, candidates.without_comments(text).split("\n"))
    return [line.strip() for line, rule in zip(text.split("\n"), rules) if not rule]


def fake_mutants(source):
    source.mutants = {n: [line + " /**/", line + " broken", line + '""'] for n, line in enumerate(source.lines, 1)}


def drawn(text, seed):
    """The key of the mutant that is drawn first of a file with this text."""
    source = candidates.Source("mm/a.c", text)
    fake_mutants(source)
    draw = object.__new__(candidates.Draw)
    draw.sources, draw.left_out = {"mm/a.c": source}, candidates.Counter()
    return [candidate.key for candidate in draw.order(seed)]


def test_the_rules_leave_out_what_they_say():
    assert drawable("mm/a.c", SAMPLE) == [
        "int plus(int a, int b) /* behind code */",
        'text_print(sink, "/* no comment */");',
        "return a + b;",
    ]
    assert drawable("mm/a_cmd.c", SAMPLE) == []


def test_a_seed_draws_the_same_mutants_when_lines_move():
    moved = SAMPLE.replace("int plus", "\n/* More. */\n\nint plus")
    assert drawn(SAMPLE, 1) == drawn(moved, 1)
    assert {tuple(drawn(SAMPLE, seed)) for seed in range(20)} != {tuple(drawn(SAMPLE, 1))}


def test_a_mutant_changes_its_line_only_and_keeps_a_comment_that_goes_on():
    text = "int a; /* one\n * two */\nint b;\n"
    source = candidates.Source("mm/a.c", text)
    assert source.broken(candidates.Candidate("mm/a.c", 1, "", "int a;", "long a;")) == "long a; /* one\n * two */\nint b;\n"
    assert source.broken(candidates.Candidate("mm/a.c", 3, "", "int b;", "long b;")) == text.replace("int b", "long b")


def test_marks_are_read_with_reasons_of_several_lines(tmp_path):
    path = tmp_path / "marks.txt"
    path.write_text("# Head.\n\nmm/a.c f\n- a = 1;\n+ a = 2;\nNobody reads\nit.\n\nmm/b.c\n- int b;\n+\nUnused.\n")
    assert candidates.read_marks(path) == {
        ("mm/a.c", "f", "a = 1;", "a = 2;"): "Nobody reads it.",
        ("mm/b.c", "", "int b;", ""): "Unused.",
    }


def test_each_mark_names_a_line_that_is_there():
    draw, lost = candidates.Draw(ROOT), []
    for path, function, before, after in candidates.read_marks(ROOT / "tests/mutants/equivalent.txt"):
        lines = draw.sources[path].lines if path in draw.sources else []
        there = [n for n, line in enumerate(lines) if line.strip() == before and candidates.function_at(lines, n) == function]
        if not there or before == after:
            lost.append((path, function, before))
    assert not lost
