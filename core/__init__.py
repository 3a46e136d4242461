"""The house: words, keys, scripts, queue, history, tracker, sight, runtime. Services → stores → scripts, keys → words."""
