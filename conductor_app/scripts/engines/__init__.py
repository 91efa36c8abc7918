"""The engines that a helper process can run; each is imported there by its bare name, as nothing else of ours is."""
