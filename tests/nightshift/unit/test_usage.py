"""What a night's processes take."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from nightshift.report.night import ProcessUse
from nightshift.usage import Meter

HUNGRY = "held = bytearray(64 * 1024 * 1024); print('ready', flush=True); input()"
MEGABYTE = 1024 * 1024


@pytest.fixture
def hungry() -> Iterator[int]:
    """A child that holds 64 MiB."""
    with subprocess.Popen([sys.executable, "-c", HUNGRY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
        child.kill()


def used(meter: Meter) -> dict[str, ProcessUse]:
    return {use.name: use for use in meter.uses()}


def test_each_child_is_counted_under_its_name_and_once_in_all(hungry: int) -> None:
    meter = Meter()
    meter.sample({"hungry": hungry})
    uses = used(meter)
    assert set(uses) == {"night", "hungry", "all together"}
    assert uses["hungry"].peak_rss_bytes > 60 * MEGABYTE
    assert uses["all together"].peak_rss_bytes == uses["night"].peak_rss_bytes + uses["hungry"].peak_rss_bytes
    assert uses["night"].cpu_s > 0


def test_a_child_that_is_gone_takes_nothing_and_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    meter = Meter()
    meter.sample({"gone": child.pid})
    assert used(meter)["gone"].peak_rss_bytes == 0


def test_samples_in_quick_succession_are_one(hungry: int) -> None:
    meter = Meter()
    meter.sample({})
    meter.sample({"hungry": hungry})
    assert set(used(meter)) == {"night", "all together"}


def test_nothing_sampled_is_nothing_together() -> None:
    [together] = Meter().uses()
    assert (together.name, together.peak_rss_bytes, together.cpu_s) == ("all together", 0, 0)
