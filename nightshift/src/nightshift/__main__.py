"""`python -m nightshift` is the `nightshift` command."""

from nightshift.cli import main

main()
