"""report.html: one offline page."""
