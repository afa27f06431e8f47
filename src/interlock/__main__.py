"""`python -m interlock` is the program `interlock`."""

from interlock.views.cli.main import main

main()
