"""Benchmarks of `make bench`: throughput and latency over HTTP, with the requests that workers send."""
