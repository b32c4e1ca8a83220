"""`python -m bench` is the command `uqbench`."""

from bench.cli.main import main

if __name__ == "__main__":
    main()
