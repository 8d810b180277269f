"""Samplers: prompt ids in, sampled ids and log-probabilities out."""

from deliberation.samplers.base import Sample, Sampler, SampleRequest

__all__ = ["Sample", "SampleRequest", "Sampler"]
