"""What tools are told of a program's surroundings."""
