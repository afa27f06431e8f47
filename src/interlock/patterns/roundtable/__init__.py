"""`Roundtable`: the agents of a pool discuss a topic in rounds.

What lives here: the prompts of a discussion and the contract of `discuss`. Agents, sessions,
breakers and the run belong to `patterns/pool`; a turn is a message sent through its engine, and a
round is a deadline that its messages share.

Start with `roundtable.py`; `prompt.py` writes the prompts. Special words: a *turn* here is what one
agent says in one round; a *synthesis* is the summary at the end.
"""
