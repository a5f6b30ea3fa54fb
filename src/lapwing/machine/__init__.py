"""What Lapwing asks of the machine that it runs on: files, processes, Ctrl-C, addresses."""
