"""Deciders of intents (CCOS): which agent is asked to reach a goal, and what comes of it."""
