"""Predictions that were made elsewhere: read with care, scored here, stored beside runs and marked as not re-run."""
