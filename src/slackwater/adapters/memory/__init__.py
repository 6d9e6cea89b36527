from slackwater.adapters.memory.store import MemoryStore

__all__ = ["MemoryStore"]
