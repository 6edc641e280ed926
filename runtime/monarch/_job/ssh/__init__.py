"""`SSHJob`: hosts that are reached by SSH."""
