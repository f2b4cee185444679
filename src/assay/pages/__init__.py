"""Pages for people: grades, reports, badges, and how grades work. Without scripts."""
