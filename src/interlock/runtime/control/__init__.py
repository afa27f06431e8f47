"""The control socket of a durable run: how other processes reach the run while it is in progress.

`protocol` says what a request and a reply look like, `server` listens for the run, `client` asks on
behalf of another process, and `handler` carries out the requests on a Runtime. The facts of a run
are not served here: every process can read them from the journal.

Start reading at `protocol.py`. *Request* means one line from a client, *reply* the line it gets.
"""
