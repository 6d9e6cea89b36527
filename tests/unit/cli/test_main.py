"""Mistakes on the command line: one clear line each, and never a traceback."""

import re
import sys
from collections.abc import Iterator

import pytest
import structlog

from slackwater.cli.main import COMMANDS, main

Said = tuple[int, str, str]


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Iterator[Said]:
    """The exit code, output and errors of a command line."""
    monkeypatch.setattr(sys, "argv", ["slackwater", *request.param])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("CELERY_APP", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    yield int(ended.value.code or 0), out, err
    structlog.reset_defaults()  # the logs went to this test's standard error


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (["status"], "no application named; pass -A PACKAGE.MODULE or set CELERY_APP"),
        (["-A", "no_such_module", "status"], "application 'no_such_module' cannot be loaded: "),
        (["-A", "json:nothing", "status"], "application 'json:nothing' cannot be loaded: "),
        (["-A", "json", "status"], "application 'json' cannot be loaded: "),
        (["-A", "json:dumps", "status"], "'json:dumps' holds no Celery application"),
        (["-A", "json:nothing", "status"], "module json holds none by that name; pass -A"),
        (["-A", "json.nothing", "status"], "module json holds none by that name; pass -A"),
        (["-A", "tests.unit.cli.needy", "status"], "needy': No module named 'no_such_library' ("),
        (["-A", "tests.unit.cli.endless", "status"], "TypeError: Entry.__init__() missing 1 required keyword-only"),
        (["-A", "tests.unit.cli.unreadable", "status"], "unreadable.py, line 3); correct it there"),
        (["-A", "tests.unit.cli.packed", "status"], "packed': No module named 'no_such_library' ("),
        (["-A", "..", "status"], "application '..' cannot be loaded: "),
        (["-A", "tests.unit.cli.bare", "status"], "application 'bare' has no Slackwater; add sw = Slackwater("),
        (["-A", "tests.unit.cli.misspelt", "status"], "misspelt': lane 'till': slots must be at least 1, not 0 ("),
        (["-A", "tests.unit.cli.misspelt", "status"], "misspelt.py, line 5); correct it there"),
    ],
    indirect=["said"],
)
def test_a_wrong_application_is_one_line(said: Said, line: str) -> None:
    code, out, err = said
    assert (code, out) == (2, "")
    assert err.startswith("slackwater: ")
    assert line in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (["statsu"], "No such command 'statsu'"),
        (["status", "--jsno"], "No such option"),
        (["worker"], "Missing argument 'LANE...'"),
        (["worker", "till", "--slots", "0"], "0 is not in the range x>=1"),
    ],
    indirect=["said"],
)
def test_a_wrong_word_is_told_with_the_usage(said: Said, word: str) -> None:
    code, out, err = said
    assert (code, out) == (2, "")
    assert word in err
    assert err.startswith("Usage: slackwater")


@pytest.mark.parametrize("said", [["--help"]], indirect=True)
def test_help_needs_no_application_and_names_all_commands(said: Said) -> None:
    code, out, err = said
    assert (code, err) == (0, "")
    assert all(f"  {command} " in out for command in COMMANDS)
    assert re.findall(r"^    (\d+)  ", out, re.MULTILINE) == ["0", "1", "2", "130"]
