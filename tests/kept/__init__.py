"""What earlier versions wrote, which later ones have to read: archives, one a version."""
