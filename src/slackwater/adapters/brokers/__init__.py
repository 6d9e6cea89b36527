from slackwater.adapters.brokers.gauge import open_gauge
from slackwater.adapters.brokers.messages import Messages, open_messages
from slackwater.adapters.brokers.results import CeleryResults

__all__ = ["CeleryResults", "Messages", "open_gauge", "open_messages"]
