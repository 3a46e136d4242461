"""A browser at the page of a sign-in."""

import re

from aiohttp import ClientSession

_FIELD = re.compile(r'type="hidden" name="(\w+)" value="(\w+)"')


async def form_of(browser: ClientSession, address: str) -> dict[str, str]:
    """The fields of the form of the page."""
    async with browser.get(address, headers={"Accept": "text/html"}) as page:
        return dict(_FIELD.findall(await page.text()))


async def confirmed(browser: ClientSession, address: str) -> str:
    """Open the page and press its button; returns the address of the service to which it leads."""
    form = await form_of(browser, address)
    async with browser.post(address, data=form, allow_redirects=False) as answer:
        return answer.headers["Location"]
