"""What the workers of the cases load."""

import os

from tests.integration.cases.application import make
from tests.integration.celery.application import Place, follow_signals

sw = make(Place.from_environment(os.environ))
app = sw.app
follow_signals()
