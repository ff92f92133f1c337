"""Every mechanism has a proof, and every proof is about the code as it is."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from dpsubset.mechanisms import MECHANISMS
from support.tools import load_script

sign = load_script("tools/sign_proofs.py")
PROOFS = sorted(path.name for path in files("dpsubset").joinpath("proofs").iterdir()
                if path.name.endswith(".md"))  # fmt: skip


def text(name: str) -> str:
    return files("dpsubset").joinpath("proofs", name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_proof_that_cites_it(name: str) -> None:
    file = name.replace("-", "_") + ".md"
    assert file in PROOFS, f"write src/dpsubset/proofs/{file}"
    cls = MECHANISMS[name]
    module = cls.__module__.removeprefix("dpsubset.")
    assert f"{module}:{cls.__name__}" in sign.citations(text(file))
    # Its guarantee rests on the spread of the scores.
    assert "scores.md" in text(file)


@pytest.mark.parametrize("name", PROOFS)
def test_cited_code_exists_and_has_not_changed_since_signing(name: str) -> None:
    cited, head = sign.citations(text(name)), sign.signatures(text(name))
    assert cited, "a proof cites code"
    for citation in cited:
        found = sign.fingerprint(citation)  # raises if there is no such code
        assert head.get(citation) == found, (
            f"{citation} is not the code that {name} was signed for: read the proof again, mend it "
            "if need be, then run tools/sign_proofs.py"
        )
    assert set(head) == set(cited)


SOURCE = '''
LIMIT = 3
SIZE: int = 4

class Box:
    """A box."""

    lid = True

    def open(self, by: int = 1) -> int:
        """Open it."""
        return by + LIMIT  # at least

def close(x):
    return x
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "__init__.py").write_text("here = 1\n")
    (tmp_path / "box.py").write_text(SOURCE)
    return tmp_path


CITATIONS = ["box:LIMIT", "box:SIZE", "box:Box", "box:Box.open", "box:Box.lid", "box:close"]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("  # at least", "  # something else", set()),
        ('"""Open it."""', '"""Open the box."""', set()),
        ("return by + LIMIT", "return (by\n                + LIMIT)", set()),
        ("by + LIMIT", "by - LIMIT", {"box:Box", "box:Box.open"}),
        ("LIMIT = 3", "LIMIT = 4", {"box:LIMIT"}),
        ("SIZE: int = 4", "SIZE: int = 5", {"box:SIZE"}),
        ("lid = True", "lid = False", {"box:Box", "box:Box.lid"}),
        ("by: int = 1", "by: int = 2", {"box:Box", "box:Box.open"}),
        ("def close(x):", "def close(y):", {"box:close"}),
    ],
)
def test_fingerprints_see_code_and_nothing_else(
    package: Path, old: str, new: str, changed: set[str]
) -> None:
    before = {c: sign.fingerprint(c, package) for c in CITATIONS}
    assert len(set(before.values())) == len(CITATIONS)
    assert SOURCE.count(old) == 1
    (package / "box.py").write_text(SOURCE.replace(old, new))
    assert {c for c in CITATIONS if sign.fingerprint(c, package) != before[c]} == changed


def test_citations_of_nothing_are_refused(package: Path) -> None:
    assert sign.fingerprint("sub:here", package)
    for citation in ("no:thing", "box:Lid", "box:Box.close", "sub:there", "box:close.x"):
        with pytest.raises(LookupError):
            sign.fingerprint(citation, package)


def test_a_signed_proof_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "fingerprint", lambda citation: "00" + str(len(citation)))
    plain = "# Proof\n\nBy `box:LIMIT` and `sub.box:Box.open`, and `box:LIMIT` again; `x = y`.\n"
    signed = sign.signed(plain)
    assert sign.body(signed) == plain
    assert sign.signatures(signed) == {"box:LIMIT": "009", "sub.box:Box.open": "0016"}
    assert sign.signed(signed) == signed
    assert sign.signatures(plain) == {}


def test_only_the_named_proofs_are_signed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sign, "PROOFS", tmp_path)
    plain = "By `mechanisms.exponential:Exponential`.\n"
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(plain)

    def unsigned() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir() if path.read_text() == plain)

    for slip in (["--chek"], ["c.md"], ["a.md", "--check"]):
        assert sign.main(slip) == 2
    assert sign.main(["--check"]) == 1
    assert unsigned() == ["a.md", "b.md"]
    assert sign.main(["b.md"]) == 0
    assert unsigned() == ["a.md"]
    assert sign.main([]) == 0
    assert unsigned() == []
