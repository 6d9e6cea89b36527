"""A package whose application is in its module `celery`."""
