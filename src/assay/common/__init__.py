"""Small general tools. No product words in here, and nothing above is imported."""
