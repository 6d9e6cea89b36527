"""An application whose library is not installed."""

import no_such_library  # type: ignore[import-not-found]  # noqa: F401
