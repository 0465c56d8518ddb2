"""``python -m es_simhash`` is the command line."""

from es_simhash.cli import main

if __name__ == "__main__":
    main()
