"""`python -m interlock` is the program `interlock`."""

from interlock.views.main import main

main()
