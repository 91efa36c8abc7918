"""What is told to those who watch."""
