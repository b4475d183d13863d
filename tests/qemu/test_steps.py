"""tests/model/steps.txt agrees with the code, names each step of a model, and notices changes of the code that no search of schedules does."""

import re
import shutil

import mutants
import pytest
import steps
from machine import ROOT

MODELS = ROOT / "tests/model"


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


def test_the_code_half_of_each_mutant_is_noticed(tmp_path):
    """The table alone notices the code half that no search does, whatever spin says of the other half."""
    every = [mutant for mutant in mutants.every_mutant() if mutant.by_steps]
    files = {row.file for row in steps.rows()} | {name for mutant in every for name in mutant.files}
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tree = mutants.Tree.__new__(mutants.Tree)
    tree.folder = tmp_path
    assert len(every) > 5
    assert not steps.complaints(tmp_path)
    for mutant in every:
        with tree.broken(mutant.path, "tests/model/"):
            wrong = steps.complaints(tmp_path, mutant.model)
        assert wrong, f"{mutant.name}: no row of {mutant.model} in steps.txt notices its code half"
        print(f"{mutant.name}: {wrong[0]}")
