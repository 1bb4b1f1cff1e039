"""What a trace of torch.profiler says of the lines of a program: which wait, copy, load, and leave the GPU idle."""
