"""What is asked: systems, workloads, load, settings, and the file that says so."""
