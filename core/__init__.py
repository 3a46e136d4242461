"""The house: words, keys, scripts, queue, histories, tracker, sight, runtime.

Services → stores → scripts, keys → words.
"""
