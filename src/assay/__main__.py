"""`python -m assay`, and the installed command."""

from assay.cli.main import main

if __name__ == "__main__":
    main()
