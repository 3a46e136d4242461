"""Imported last by the fork server: prepares what forks share.

The garbage collector of a fork leaves the shared memory of the modules alone. It does not run before: that takes a
quarter of a second, for which the first process waits, and 17 MB more in all forks, and frees next to nothing.
setproctitle looks up the place of the title, which it no longer finds after a fork has replaced its environment. The
names of the channels and the functions of Redis are read once for all.
"""

import gc

from setproctitle import getproctitle

from core.redis import library
from couriers.channel import channels

getproctitle()
channels()
library.current()
gc.freeze()
gc.enable()
