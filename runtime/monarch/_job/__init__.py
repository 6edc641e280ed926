"""Jobs: where hosts come from. Each kind of job creates, finds and ends the hosts of its meshes."""
