"""Plans: systems, workloads, load and settings of an experiment, and their YAML files."""
