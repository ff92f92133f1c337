"""A suite of real tables: how much of the best set's fit a private selection keeps."""
