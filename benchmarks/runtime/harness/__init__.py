"""What runs in the session: peers and their environments, the runs, the table, the plot."""
