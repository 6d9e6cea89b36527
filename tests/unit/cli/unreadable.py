"""An application that raises where nobody expects it."""

raise SyntaxError("as a file that is no Python would")
