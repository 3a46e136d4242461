"""The values of core: deliveries, histories, states, times. Pure: no Redis, no HTTP, no asyncio."""
