"""The command line itself: what it can print, and how it ends."""

import io
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

import nightshift.night
from nightshift.cli import main


@pytest.fixture
def end_of_night(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], bool]], int]]:
    """Run the command with another night; return its exit code."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(night: Callable[[], bool]) -> int:
        monkeypatch.setattr(nightshift.night, "run_night", lambda _: night())
        monkeypatch.setattr(sys, "argv", ["nightshift", "night"])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signs_that_the_terminal_cannot_show_are_replaced(
    end_of_night: Callable[[Callable[[], bool]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", out)

    def night() -> bool:
        sys.stdout.write("● Käse\n")
        sys.stdout.flush()
        return True

    assert end_of_night(night) == 0
    assert out.buffer.getvalue() == b"? K?se\n"


def test_an_error_of_ours_keeps_its_traceback_and_is_not_taken_for_a_failed_check(
    end_of_night: Callable[[Callable[[], bool]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    def night() -> bool:
        raise LookupError("who wrote this?")

    assert end_of_night(night) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "LookupError: who wrote this?"


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_all_checks_hold(
    end_of_night: Callable[[Callable[[], bool]], int], ok: bool, code: int
) -> None:
    assert end_of_night(lambda: ok) == code
