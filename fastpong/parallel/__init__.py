"""Who computes together: ranks, the cores of this machine, and states cut by envs."""
