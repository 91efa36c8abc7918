"""Human tasks, their forms and their assignments."""
