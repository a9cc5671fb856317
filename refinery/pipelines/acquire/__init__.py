"""Source files of repositories, pinned to commits, as records that a recipe reads."""
