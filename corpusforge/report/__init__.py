"""What a person looks at: the HTML report of a run, and anything on disk shown in a terminal."""
