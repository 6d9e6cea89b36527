"""`python -m slackwater` is the `slackwater` command."""

from slackwater.cli.main import main

main()
