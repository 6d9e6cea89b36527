"""What the workers of the tests load."""

import os

from tests.integration.celery.application import Place, follow_signals, make

sw = make(Place.from_environment(os.environ))
app = sw.app
follow_signals()
