"""`python -m nightshift.world`."""

from nightshift.world.cli import main

if __name__ == "__main__":
    main(prog_name="python -m nightshift.world")
