"""What operators run by hand, and what keeps one machine's processes alive."""
