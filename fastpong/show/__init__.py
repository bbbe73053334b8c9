"""Pictures of what happens; nothing here knows an agent."""
