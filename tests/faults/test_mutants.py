from __future__ import annotations

import shutil

import pytest
from support.faults.mutants import PACKAGE, ROOT
from support.faults.mutations import MUTATIONS, Mutation


@pytest.fixture
def package(tmp_path):
    """A copy of the package."""
    return shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))


def test_every_mutation_still_applies_and_still_compiles(package):
    """A mutation whose text has changed is mended with it, or it would prove nothing."""
    for mutation in MUTATIONS:
        path = package / mutation.file
        before = path.read_text()
        mutation.apply(package)
        compile(path.read_text(), mutation.file, "exec")
        assert path.read_text() != before
        path.write_text(before)


def test_a_mutation_whose_text_is_gone_is_refused(package):
    """Mutations rot loudly."""
    with pytest.raises(ValueError, match="occurs 0 times in sending"):
        Mutation("gone", "sending/sender.py", "nowhere to be found", "").apply(package)


def test_every_mutation_has_tests_that_are_there():
    """A mutation names the tests that are to notice it: one that is gone would end them all."""
    assert [path for mutation in MUTATIONS for path in mutation.tests if not (ROOT / path).exists()] == []
    for mutation in (each for each in MUTATIONS if each.first):
        assert f"def {mutation.first}(" in "".join((ROOT / path).read_text() for path in mutation.tests)
