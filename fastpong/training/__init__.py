"""How a run goes: its session, its loop, who acts, and how its weights play."""
