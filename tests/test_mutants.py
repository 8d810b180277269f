"""The hand-made mutants stay in step with the code. `python tests/mutants/run.py` tries them."""

import pytest

from tests.mutants.run import ROOT, Mutant, read_mutants

MUTANTS = read_mutants()


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_and_is_valid_python(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    compile(mutant.applied(source), mutant.file, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text(encoding="utf-8")
