"""The privacy statement: gathered (content), written as Markdown, and converted to other forms."""
