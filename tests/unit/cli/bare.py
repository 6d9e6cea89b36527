"""An application that nobody put Slackwater around."""

from celery import Celery

app = Celery("bare", set_as_current=False)
