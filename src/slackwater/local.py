"""Servers and processes on this machine: one folder a run, a supervisor over its children, and the embedded servers.

```python
with RunFolder(Path(".slackwater")) as run, Supervisor(run) as supervisor:
    servers = Servers.start(run.path, supervisor)
    supervisor.start(Child(name="worker", argv=[...], env=..., log_path=run.log("worker")))
    while (died := supervisor.poll()) is None:
        ...
```
"""

from slackwater.adapters.embedded.child import Child, ChildDied, ChildNotReady
from slackwater.adapters.embedded.parent_death import follow_parent
from slackwater.adapters.embedded.postgres import PostgreSQL
from slackwater.adapters.embedded.run_folder import Data, RunFolder, RunFolderInUse
from slackwater.adapters.embedded.servers import ServerPlan, Servers, masked
from slackwater.adapters.embedded.stop_signals import StopSignals
from slackwater.adapters.embedded.supervisor import StartInterrupted, Supervisor
from slackwater.adapters.embedded.valkey import Valkey

__all__ = [
    "Child",
    "ChildDied",
    "ChildNotReady",
    "Data",
    "PostgreSQL",
    "RunFolder",
    "RunFolderInUse",
    "ServerPlan",
    "Servers",
    "StartInterrupted",
    "StopSignals",
    "Supervisor",
    "Valkey",
    "follow_parent",
    "masked",
]
