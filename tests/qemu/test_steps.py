"""tests/model/steps.txt agrees with the code, names each step of a model, and notices changes that break the code."""

import importlib.util
import re
import shutil
import sys

import pytest
from machine import ROOT

MODELS = ROOT / "tests/model"
sys.path.insert(0, str(MODELS))

import steps  # noqa: E402

CODE = """
void give(void); /* fence_full(); */
static void give(struct frame *frame)
{
	struct lock *lock = frame->lock;

	ASSERT(frame->used, "give %s", frame->name);
	frame->tag = next; /* then */
	fence_full();
	atomic_store_release(&frame->free,
			     1);
	atomic_store_relaxed(&frame->count, 0);
}
"""
ROW = ("ASSERT(frame->used", "frame->tag = next;", "fence_full();", "atomic_store_release(&frame->free, 1);")

# Changes of the code, and the messages about them.
BROKEN = {
    "nothing": (("then", "later"), ""),
    "fence_gone": (("\tfence_full();\n", ""), "no `fence_full();`"),
    "fence_in_a_comment": (("\tfence_full();\n", "\t/* fence_full(); */\n"), "no `fence_full();`"),
    "fence_in_a_line_comment": (("\tfence_full();\n", "\t// fence_full();\n"), "no `fence_full();`"),
    "fence_in_a_string": (("\tfence_full();\n", '\tsay("fence_full();");\n'), "no `fence_full();`"),
    "fence_before": (("\tframe->tag = next; /* then */\n\tfence_full();\n", "\tfence_full();\n\tframe->tag = next;\n"), "`frame->tag = next;`"),
    "release_weakened": (("atomic_store_release(&frame->free", "atomic_store_relaxed(&frame->free"), "no `atomic_store_release(&frame->free, 1);`"),
    "check_gone": (('\tASSERT(frame->used, "give %s", frame->name);\n', ""), "no `ASSERT(frame->used`"),
    "check_of_another": (("ASSERT(frame->used,", "ASSERT(frame->used_once,"), "no `ASSERT(frame->used`"),
    "done_early_too": (("\tframe->tag = next;", "\tfence_full();\n\tframe->tag = next;"), "`frame->tag = next;`"),
    "done_twice": (("\tatomic_store_relaxed(", "\tfence_full();\n\tatomic_store_relaxed("), "once more"),
    "function_gone": (("static void give(", "static void take("), "defined 0 times"),
    "preprocessor": (("\tfence_full();\n", "#if 0\n\tfence_full();\n#endif\n"), "preprocessor"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_noticed(broken, tmp_path):
    (old, new), said = BROKEN[broken]
    assert CODE.count(old) == 1
    (tmp_path / "give.c").write_text(CODE.replace(old, new))
    wrong = steps.complaint(tmp_path, steps.Row(("model",), "step()", "give.c", "give", ROW))
    assert said in wrong and bool(wrong) == bool(said), wrong


def test_the_code_says_each_step():
    assert len(steps.rows()) > 150
    wrong = steps.complaints(ROOT)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("model", sorted(path.stem for path in MODELS.glob("*.pml")))
def test_each_step_is_named(model):
    """The table names every inline and process of a model, and nothing that the model does not have."""
    text = steps.bare((MODELS / f"{model}.pml").read_text(encoding="utf-8"))
    there = set(re.findall(r"^(?:inline|(?:active )?proctype) (\w+)\(", text, re.M))
    own, shared = steps.named(model)
    assert len(there) > 5
    assert not there - shared, f"not in steps.txt: {sorted(there - shared)}"
    unknown = own - there - set(re.findall(r"^#define ([a-z]\w*)\(", text, re.M))
    assert not unknown, f"not in the model: {sorted(unknown)}"


def spin_mutants():
    """The mutants that break a model and the code, and the module that makes them."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests/mutants/run.py")
    mutants = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutants)
    every = [mutants.Mutant(path) for path in sorted((ROOT / "tests/mutants").glob("*.mutant"))]
    return mutants, [mutant for mutant in every if mutant.target == "spin"]


def test_the_code_half_of_each_mutant_is_noticed(tmp_path):
    """The table alone notices the code half, whatever spin says of the other half."""
    mutants, every = spin_mutants()
    files = {row.file for row in steps.rows()} | {name for mutant in every for name in mutant.files}
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tree = mutants.Tree.__new__(mutants.Tree)
    tree.folder = tmp_path
    assert len(every) > 20
    for mutant in every:
        assert not steps.complaints(tmp_path, mutant.model)
        with tree.broken(mutant.path, "tests/model/"):
            wrong = steps.complaints(tmp_path, mutant.model)
        assert wrong, f"{mutant.name}: no row of {mutant.model} in steps.txt notices its code half"
        print(f"{mutant.name}: {wrong[0]}")
