"""Simulates api.vk.com: methods under /method/, `execute` with the VKScript of `sandbox.vkscript`, and `faults.VK`."""

from sandbox.vk.server import VkServer

__all__ = ["VkServer"]
