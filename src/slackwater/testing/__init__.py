from slackwater.testing.twice import NotIdempotent, Twice, run_twice

__all__ = ["NotIdempotent", "Twice", "run_twice"]
