"""Pages of saved views, alerts and targets of alerts."""
