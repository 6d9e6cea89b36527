from slackwater.testing.fault_proxy import FaultProxy
from slackwater.testing.twice import NotIdempotent, Twice, run_twice

__all__ = ["FaultProxy", "NotIdempotent", "Twice", "run_twice"]
