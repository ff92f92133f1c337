"""The verbs of the public API, one file each, and the pipeline that they share."""
