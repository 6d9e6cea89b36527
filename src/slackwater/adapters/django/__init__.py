"""Django, as far as an application's connections reach us."""
