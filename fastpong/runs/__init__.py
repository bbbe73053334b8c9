"""A run on disk: its folder, the files in it, and what strangers' files may say."""
