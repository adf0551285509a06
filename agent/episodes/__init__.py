"""Episodes: who acts, one episode as a stream of records, and many in a row."""
