"""A Parquet cache beside the results: built once, added to by content, rebuilt when damaged, shared by sessions."""
