"""SVG by hand: elements as text, with everything escaped."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

CHARACTER_PX = 6.1
"""Mean width of a character at 12 px in the page's sans serif; names and digits come out a little narrower."""


def tag(name: str, *children: str, **attributes: object) -> str:
    """Write one element.

    Children are markup; attribute values are escaped; `class_` and `text_anchor` become `class` and `text-anchor`.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_number(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def text(content: str, x: float, y: float, **attributes: object) -> str:
    """Write a line of text; its content is escaped."""
    return tag("text", escape(content), x=x, y=y, **attributes)


def title(content: str) -> str:
    """Write an element's title, which browsers show as a tooltip and read aloud; its content is escaped."""
    return tag("title", escape(content))


def path(points: str, css: str) -> str:
    """Write a path of a class."""
    return tag("path", d=points, class_=css)


def width_of(content: str, size_px: float = 12) -> float:
    """Estimate how wide a text comes out, in px."""
    return len(content) * CHARACTER_PX * size_px / 12


def _number(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
