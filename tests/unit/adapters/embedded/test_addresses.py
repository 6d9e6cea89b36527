"""Addresses that are given: shown as given, but for their passwords, and refused where they can be none."""

from pathlib import Path

import pytest

from slackwater.errors import ConfigurationError
from slackwater.local import RunFolder, Servers, Supervisor, masked


@pytest.mark.parametrize("address", ["", "foo", "memory://", "sqlite:///books", "postgresql://me@/books?host=/tmp/a"])
def test_an_address_without_a_password_is_shown_as_it_was_given(address: str) -> None:
    assert masked(address) == address


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://:secret@here:1/0", "redis://:***@here:1/0"),
        ("redis://:se?cr#et@here/0", "redis://:***@here/0"),
        ("redis://:se/cret@here/0", "redis://:***@here/0"),
        ("me:secret@here/books", "me:***@here/books"),
        ("postgresql://me@here/b?password=secret&host=/a", "postgresql://me@here/b?password=***&host=/a"),
        ("postgresql://me@here/b?host=/a&sslpassword=secret", "postgresql://me@here/b?host=/a&sslpassword=***"),
    ],
)
def test_a_password_is_not_shown_wherever_it_stands(address: str, shown: str) -> None:
    assert masked(address) == shown


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"broker_url": "foo"}, "broker 'foo': no address, it has no scheme; give redis:// or amqp://..., or none"),
        ({"broker_url": ""}, "broker '': no address, it has no scheme; give redis:// or amqp://..., or none"),
        ({"broker_url": "memory://"}, "broker memory://: memory is not supported; give redis:// or amqp://"),
        ({"store_url": "sqlite:///x"}, "store sqlite:///x: sqlite is not supported; give postgresql://"),
        ({"store_url": "books"}, "store 'books': no address, it has no scheme; give postgresql://..., or none"),
    ],
)
def test_what_can_be_no_address_is_refused_with_the_remedy(tmp_path: Path, given: dict[str, str], line: str) -> None:
    with (
        RunFolder(tmp_path) as run,
        Supervisor(run) as supervisor,
        pytest.raises(ConfigurationError) as refused,
    ):
        Servers.start(tmp_path, supervisor, **given)
    assert str(refused.value).startswith(line)
