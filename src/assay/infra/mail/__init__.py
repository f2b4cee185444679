"""Mail, sent to the server the service's owner names."""
