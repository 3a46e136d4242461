"""One file (or package) per channel, nothing else. The file name is the channel name."""
