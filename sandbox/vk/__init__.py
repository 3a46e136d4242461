"""Plays api.vk.com: methods under /method/, `execute` with real VKScript, and the failures of `faults.VK`."""

from sandbox.vk.server import VkServer

__all__ = ["VkServer"]
