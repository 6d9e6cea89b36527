"""Finding the Celery application that a command line names, and saying in one line why it cannot be had."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from celery import Celery
from celery.app.utils import find_app

import slackwater
from slackwater.errors import ConfigurationError, SlackwaterError

_REMEDY = "pass -A PACKAGE.MODULE of the Celery application"
_LIBRARIES = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_FOREIGN = (Path(slackwater.__file__).parent, *(Path(each) for each in _LIBRARIES if each))


def find_application(named: str) -> Celery:
    """Import and return an application (`PACKAGE.MODULE`, with `:NAME` or `.NAME` behind it where it is not found so).

    Raises:
        ConfigurationError: There is no such module or name, it is no application, or its module fails when imported.
    """
    if named.startswith("."):
        raise ConfigurationError(f"application {named!r} cannot be loaded: a relative name; pass -A PACKAGE.MODULE")
    sys.path.insert(0, "")
    module = _imported(named)
    try:
        found = find_app(named)
    except (ImportError, AttributeError, ValueError) as error:  # it takes a missing name for a module, and says so
        what = f"module {module.__name__} holds none by that name"
        raise ConfigurationError(f"application {named!r} cannot be loaded: {what}; {_REMEDY}") from error
    if not isinstance(found, Celery):
        raise ConfigurationError(f"{named!r} holds no Celery application; pass -A PACKAGE.MODULE:NAME")
    return found


def _imported(named: str) -> ModuleType:
    """Import the modules in which Celery will look, so that an error inside one is told as what it is."""
    name, colon, _ = named.partition(":")
    module = _import(name, asked=named)
    if module is None and not colon:
        name = name.rpartition(".")[0]  # its last part may be an attribute
        module = _import(name, asked=named) if name else None
    if module is None:
        raise ConfigurationError(
            f"application {named!r} cannot be loaded: no module is named {named.partition(':')[0]!r} "
            f"in {Path.cwd()} or among the installed ones; {_REMEDY}"
        )
    if hasattr(module, "__path__") and not hasattr(module, "app") and find_spec(f"{name}.celery") is not None:
        _import(f"{name}.celery", asked=named)
    return module


def _import(name: str, *, asked: str) -> ModuleType | None:
    """Import a module; None if there is none of that name."""
    try:
        return import_module(name)
    except SlackwaterError:
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise ConfigurationError(f"application {asked!r}: {_told(error)}; correct it there") from error


def _told(error: Exception) -> str:
    """Return an error with its kind where its text does not say it, and the last line of the application's own."""
    said = str(error) if isinstance(error, (ImportError, ValueError)) else f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if not _is_foreign(one.filename)]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return " ".join(f"{said}{where}".split())


def _is_foreign(file: str) -> bool:
    return file.startswith("<") or any(Path(file).is_relative_to(each) for each in _FOREIGN)
