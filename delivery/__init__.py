"""The way in over HTTP: checks what is asked, asks the house, and tells what it answered. It keeps nothing itself."""
