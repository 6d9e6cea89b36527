"""Holding answers against the vendor's own description of its interface, where that is at hand."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

DESCRIPTION = Path(__file__).parents[3].parent / "shared/data/enable-banking/openapi.yml"
JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def problems(value: Any, schema: dict[str, Any], schemas: dict[str, Any], *, where: str) -> list[str]:
    """List where a value breaks its schema; a field that the schema does not know is a problem too."""
    if "$ref" in schema:
        return problems(value, schemas[schema["$ref"].rsplit("/", 1)[1]], schemas, where=where)
    if "type" in schema and not isinstance(value, JSON_TYPES[schema["type"]]):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if isinstance(value, list):
        return [p for n, v in enumerate(value) for p in problems(v, schema["items"], schemas, where=f"{where}[{n}]")]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found = [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
        found += [f"{where}: {name} is not known" for name in value if name not in known]
        inner = [(name, value[name], known[name]) for name in value if name in known]
        return found + [p for n, v, s in inner for p in problems(v, s, schemas, where=f"{where}.{n}")]
    return text_problems(value, schema, where=where)


def text_problems(value: Any, schema: dict[str, Any], *, where: str) -> list[str]:
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return [f"{where}: {value!r} does not match {schema['pattern']}"]
    parsers: dict[str, Callable[[str], object]] = {
        "date": dt.date.fromisoformat,
        "date-time": dt.datetime.fromisoformat,
        "uuid": UUID,
    }
    try:
        parsers.get(schema.get("format", ""), str)(value)
    except ValueError:
        return [f"{where}: {value!r} is no {schema['format']}"]
    return []
