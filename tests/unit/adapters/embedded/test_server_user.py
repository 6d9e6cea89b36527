"""Whom a server of root's runs as."""

from slackwater.adapters.embedded.server_user import ServerUser, choose_user

ROOT = ("root", 0, 0)


def test_nobody_is_taken_where_there_is_nobody() -> None:
    known = [ROOT, ("daemon", 1, 1), ("nobody", 65534, 65534), ("anna", 1000, 1000)]
    assert choose_user(known) == ServerUser(name="nobody", uid=65534, gid=65534)


def test_the_next_best_is_taken_where_there_is_no_nobody() -> None:
    assert choose_user([ROOT, ("anna", 1000, 100), ("daemon", 1, 1)]) == ServerUser(name="daemon", uid=1, gid=1)


def test_anybody_but_root_will_do() -> None:
    assert choose_user([("toor", 0, 0), ("anna", 1000, 100)]) == ServerUser(name="anna", uid=1000, gid=100)


def test_root_alone_is_no_choice() -> None:
    assert choose_user([ROOT, ("toor", 0, 0)]) is None
