"""What the import of vkbottle changes in the process, and what one client leaves behind."""

import gc
import subprocess
import sys
import weakref

from couriers.vk.client import VkClient
from tests.support.http_double import HttpDouble

IMPORT = """
import logging, warnings
before = warnings.showwarning
import couriers.vk.courier
from vkbottle import DEFAULT_RESPONSE_VALIDATORS
log = logging.getLogger("vkbottle")
print(warnings.showwarning is before, log.handlers, log.isEnabledFor(logging.INFO), len(DEFAULT_RESPONSE_VALIDATORS))
"""


def test_the_import_leaves_warnings_and_logs_of_the_process_alone() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    assert done.stdout == "True [] False 2\n", done.stderr


async def test_a_closed_client_is_not_kept() -> None:
    """Bots come and go: vkbottle registers each HTTP client for the end of the process."""
    async with HttpDouble() as vk:
        client = VkClient("secret", vk.url)
        await client.call("users.get")
        kept = weakref.ref(client.http_client)
        await client.close()
        del client
    gc.collect()
    assert kept() is None
