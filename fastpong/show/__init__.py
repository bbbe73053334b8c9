"""What people, and other programs, see: games, a run on its way, curves. Nothing here plays or learns."""
