"""What is said of a table and of a problem: public, and checked before any value."""
