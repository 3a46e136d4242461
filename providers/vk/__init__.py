"""VK as a community: the client with vkbottle, its errors, Bots Long Poll, the reader of events.

This module, the errors and the reader import no vkbottle, which takes a second of processor time.
Source: dev.vk.com.
"""

CHANNEL = "vk"
