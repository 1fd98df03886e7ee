"""What every part of the package may use: files and folders, reading what others wrote, messages, interruptions."""
