"""Agents that are called in this process: coroutines on the event loop, functions in threads.

Neither can be ended from outside. A coroutine can be cancelled and may ignore that; a thread can
only be asked, through `ctx.cancelled()`. Either keeps its claims until it has returned.

Not here: telling the two apart, which is `call_spec`, and anything that can be killed, which is
`processes` and `commands`.
"""
