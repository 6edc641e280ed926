"""Rigs: surroundings that tests of many hosts run in, made on one machine."""
