"""Parts of the benchmark: see ../README.md."""
