"""What a child is, and what is told of one that died."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from slackwater.adapters.embedded.child import LAST_LINES, Child, ChildNotReady, death_of, last_lines
from slackwater.errors import LocalServiceError


def child(log: Path) -> Child:
    return Child(name="worker", argv=("sleep", "1"), log_path=log)


def test_a_child_without_a_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalServiceError, match="child 'worker': has no command line; give argv at least a program"):
        Child(name="worker", argv=(), log_path=tmp_path / "log")


def test_a_child_that_must_have_stopped_before_it_was_asked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalServiceError, match="stop_within is negative"):
        Child(name="worker", argv=("sleep",), log_path=tmp_path / "log", stop_within=timedelta(seconds=-1))


def test_of_a_thousand_lines_the_last_ones_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    assert last_lines(log) == tuple(f"line {number}" for number in range(1000 - LAST_LINES, 1000))


def test_a_log_of_one_endless_line_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 1_000_000)
    (line,) = last_lines(log)
    assert len(line) == 64 * 1024


def test_a_log_that_was_never_written_has_no_lines(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "log") == ()


@pytest.mark.parametrize(
    ("return_code", "sentence"),
    [(-9, "worker (pid 7) was killed by SIGKILL"), (3, "worker (pid 7) ended with exit code 3")],
)
def test_a_death_is_told_in_one_sentence(tmp_path: Path, return_code: int, sentence: str) -> None:
    died = death_of(child(tmp_path / "log"), pid=7, return_code=return_code)
    assert died.sentence == sentence
    assert died.signal == (signal.SIGKILL if return_code < 0 else None)


def test_a_child_that_was_never_ready_is_told_with_its_last_words_and_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("starting\n\ncannot find the moon\n")
    told = str(ChildNotReady.late(child(log), timedelta(seconds=2)))
    assert told == (
        f"worker was not ready within 2 s and was stopped (it said: starting | cannot find the moon); see {log}"
    )
