"""General tools without product terms. They import nothing from the other packages."""
