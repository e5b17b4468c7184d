"""The Python kit of agentd: what an agent needs to be a good unit, from the standard library alone.

An agent says ``from agentd import agent`` and calls what it needs; without agentd (in a terminal, in a unit test)
each call does nothing harmful. ``runner.py`` beside this package runs a module as an agent.
"""
