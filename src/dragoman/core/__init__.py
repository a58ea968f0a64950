"""What is decided: pure rules over frozen commands, events, states. No I/O, clock or chance."""
