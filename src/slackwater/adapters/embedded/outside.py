"""Folders outside a run's folder that belong to it, each marked with whose it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MARK = "belongs-to"


@dataclass(frozen=True, kw_only=True)
class OutsideFolder:
    """A folder elsewhere that belongs to a run.

    Attributes:
        path: The folder.
        holds_data: True if it is to be kept as long as the run's data are.
    """

    path: Path
    holds_data: bool


def mark_owner(folder: Path, run_folder: Path) -> None:
    """Write into a folder whose it is."""
    (folder / _MARK).write_text(str(run_folder))


def owner_of(folder: Path) -> Path | None:
    """Return the run folder that a folder says it belongs to; None if it says nothing."""
    try:
        return Path((folder / _MARK).read_text())
    except OSError:
        return None


def belongs_to(folder: Path, run_folder: Path) -> bool:
    """Tell whether a folder says that it belongs to this run folder: nothing else is ever removed."""
    return owner_of(folder) == run_folder


def read_outside(path: Path) -> list[OutsideFolder]:
    """Return the folders that a run noted; none where there is no list that can be read."""
    try:
        content = json.loads(path.read_text())
        return [OutsideFolder(path=Path(each["path"]), holds_data=bool(each["holds_data"])) for each in content]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def write_outside(path: Path, folders: Iterable[OutsideFolder]) -> None:
    """Write the folders of a run down; no file where there are none."""
    content = [{"path": str(each.path), "holds_data": each.holds_data} for each in folders]
    if content:
        path.write_text(json.dumps(content, indent=1) + "\n")
    else:
        path.unlink(missing_ok=True)
