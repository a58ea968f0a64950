"""AOF/1: task messages between agents and a dispatcher."""

from dragoman.protocols.aof.operations import dialect
from dragoman.protocols.aof.parse import PREFIX
from dragoman.protocols.aof.render import render_lines

__all__ = [
    "PREFIX",
    "dialect",
    "render_lines",
]
