"""The public description of a table: columns, bounds, labels, dates, and how a row is encoded."""
