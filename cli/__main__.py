"""`python -m cli`, which is what the script `ada` runs."""

from cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
