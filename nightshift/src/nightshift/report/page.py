"""The morning report as one self-contained page: no other resource; light and dark; small and large.

Its one script reads any moment of the night where the pointer stands; without it nothing is missing.
"""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nightshift.report.checks import Report
from nightshift.report.moments import moments
from nightshift.report.picture import heading, picture
from nightshift.report.sentences import three_sentences, verdict
from nightshift.report.tables import tables
from nightshift.report.wording import some_of

_MOST_EVIDENCE = 20


def render_page(report: Report) -> str:
    """Return the page; everything that comes from the night is escaped."""
    environment = Environment(
        loader=PackageLoader("nightshift.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # lanes keep their order
    drawn = Markup(picture(report))  # noqa: S704 - our own markup; every text in it went through svg.text or svg.title
    return environment.get_template("morning.html.j2").render(
        report=report,
        night=report.night,
        heading=heading(report.night),
        verdict=verdict(report),
        sentences=three_sentences(report),
        picture=drawn,
        moments=moments(report),
        tables=tables(report),
        some_of=some_of,
        most=_MOST_EVIDENCE,
    )
