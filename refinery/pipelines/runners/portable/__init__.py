"""Beam's portable runners, which hand a job to a job service: Prism, Flink, Spark, and any that speaks Beam's job API.

Their addresses are checked before anything runs (addresses.py), a job that an earlier command launched is found again
by its name (attach.py), and a job is watched until it ends (watch.py).
"""
