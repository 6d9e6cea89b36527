"""Names that depend on a job's arguments: `agent-run:{run_id}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

LONGEST_NAME = 500


@dataclass(frozen=True)
class NameTemplate:
    """A key's or a lease's name, with the task's parameters in braces.

    Attributes:
        text: `account:{account_id}`; braces hold parameters' names, or attributes of theirs.

    Raises:
        ValueError: No template, or one without a name in its braces.
    """

    text: str

    def __post_init__(self) -> None:
        try:
            named = self.parameters
        except ValueError as error:
            raise ValueError(f"template {self.text!r}: {error}") from None
        if not self.text.strip() or "" in named or any(name.isdigit() for name in named):
            raise ValueError(f"template {self.text!r}: put parameters' names into the braces, as in 'account:{{id}}'")

    @property
    def parameters(self) -> frozenset[str]:
        """Return the parameters that it needs."""
        fields = [field for _, field, _, _ in Formatter().parse(self.text) if field is not None]
        return frozenset(field.replace("[", ".").partition(".")[0] for field in fields)

    def missing(self, parameters: Iterable[str]) -> frozenset[str]:
        """Return what it needs that a task with these parameters cannot give."""
        return self.parameters - frozenset(parameters)

    def name(self, arguments: Mapping[str, Any]) -> str:
        """Return the name for one call's arguments.

        Raises:
            ValueError: An argument is missing, or the name gets longer than 500 characters.
        """
        try:
            name = self.text.format_map(dict(arguments))
        except (KeyError, AttributeError, IndexError) as error:
            raise ValueError(f"template {self.text!r}: the call gives no {error}") from None
        if len(name) > LONGEST_NAME:
            raise ValueError(f"template {self.text!r}: a name has at most {LONGEST_NAME} characters, not {len(name)}")
        return name
