"""Programs of the other engines. They run in an environment of their own, and import nothing of this project but one
another: a chain of five trivial steps, as many as the engine executes in the given time.
"""
