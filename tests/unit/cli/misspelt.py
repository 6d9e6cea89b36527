"""An application whose lane cannot be."""

from slackwater import Lane

lane = Lane("till", slots=0)
