"""Processes of one host: started from a zygote, watched, stopped and reaped.

`spawner` is the parent's side; `zygote` is the program that forks; `child` is what a new process
runs. The three speak over a socket pair in `messages`.
"""
