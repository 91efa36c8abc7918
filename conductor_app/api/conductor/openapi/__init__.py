"""What the API says of itself; none of it is asked while requests are served."""
