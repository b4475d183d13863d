"""Mutants that a seed draws (tests/mutants/candidates.py): the rules, the draw, and the marks of those that no test can notice."""


import candidates
from machine import ROOT

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
    out = candidates.left_out(path, candidates.without_comments(text).split("\n"))
    return [line.strip() for at, line in enumerate(text.split("\n")) if at not in out]


def test_the_rules_leave_out_what_they_say():
    assert drawable("mm/a.c", SAMPLE) == [
        "int plus(int a, int b) /* behind code */",
        'text_print(sink, "/* no comment */");',
        "return a + b;",
    ]
    assert drawable("mm/a_cmd.c", SAMPLE) == []


def test_each_mark_names_a_line_that_is_there():
    draw, lost = candidates.Draw(ROOT), []
    for path, function, before, after in candidates.read_marks(ROOT / "tests/mutants/equivalent.txt"):
        lines = draw.sources[path].lines if path in draw.sources else []
        there = [n for n, line in enumerate(lines) if line.strip() == before and candidates.function_at(lines, n) == function]
        if not there or before == after:
            lost.append((path, function, before))
    assert not lost
