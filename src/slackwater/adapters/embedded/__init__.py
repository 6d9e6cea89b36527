from slackwater.adapters.embedded.parent_death import follow_parent

__all__ = ["follow_parent"]
