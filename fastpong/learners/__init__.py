"""From transitions to new weights: PPO, and the reference programs' REINFORCE."""
