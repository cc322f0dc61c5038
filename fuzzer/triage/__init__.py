"""From a suspect to a finding: reduce, confirm, explain."""
