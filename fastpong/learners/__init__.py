"""From transitions to new weights: PPO with its critic, and the reference programs' REINFORCE."""
