"""Filing: a person has clicked "submit" and waits for the gateway's answer."""

from __future__ import annotations

from typing import Any

from nightshift.app import app, connections, sw
from nightshift.filings.submitting import file_run

RUN_KEY = "agent-run:{run_id}"
"""Who asks for a run that is filed gets its filing; the gateway is given a key of the same name, for its own part."""


@app.task(name="submit_approved_run", lane="agent_realtime", bind=True, key=RUN_KEY)
def submit_approved_run(self: Any, run_id: int) -> str:
    """File an approved run with the gateway; return the gateway's id of the filing. Safe to run twice."""
    return file_run(
        run_id,
        open_session=connections.session,
        gateway=connections.gateway,
        job_id=str(self.request.id),
        now=sw.clock.calendar,
    )
