"""Imported last by the fork server: prepares what forks share.

The garbage collector of a fork leaves the shared memory of the modules alone. setproctitle looks up the place of the
title, which it no longer finds after a fork has replaced its environment.
"""

import gc

from setproctitle import getproctitle

getproctitle()
gc.collect()
gc.freeze()
