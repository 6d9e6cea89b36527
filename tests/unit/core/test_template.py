from __future__ import annotations

from types import SimpleNamespace

import pytest

from slackwater.core.template import LONGEST_NAME, NameTemplate


def test_a_name_is_filled_in_from_the_arguments() -> None:
    assert NameTemplate("agent-run:{run_id}").name({"run_id": 7, "other": 1}) == "agent-run:7"


def test_attributes_and_items_of_arguments_can_be_named() -> None:
    template = NameTemplate("{account.id}:{period[month]}")

    assert template.name({"account": SimpleNamespace(id=7), "period": {"month": 11}}) == "7:11"
    assert template.parameters == {"account", "period"}


def test_a_template_without_braces_is_one_name_for_all_calls() -> None:
    assert NameTemplate("nightly").name({"x": 1}) == "nightly"
    assert NameTemplate("nightly").parameters == frozenset()


def test_doubled_braces_are_braces() -> None:
    assert NameTemplate("{{x}}:{y}").name({"y": 1}) == "{x}:1"


def test_what_a_task_cannot_give_is_missing() -> None:
    assert NameTemplate("{a}:{b.c}:{d}").missing(["d", "x"]) == {"a", "b"}


@pytest.mark.parametrize("text", ["", "  ", "{}", "a:{0}", "{a", "a}"])
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="template"):
        NameTemplate(text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("{a}", {"b": 1}), ("{a.id}", {"a": 1}), ("{a[b]}", {"a": {}}), ("{a[3]}", {"a": [1]})],
)
def test_an_argument_that_is_not_there_is_named(text: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the call gives no"):
        NameTemplate(text).name(arguments)


def test_a_name_of_any_length_is_not_taken() -> None:
    template = NameTemplate("{a}")

    assert len(template.name({"a": "x" * LONGEST_NAME})) == LONGEST_NAME
    with pytest.raises(ValueError, match=f"at most {LONGEST_NAME} characters, not {LONGEST_NAME + 1}"):
        template.name({"a": "x" * (LONGEST_NAME + 1)})
