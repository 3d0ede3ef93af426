# Each process is one rank. Any of these starts two of them:
#   tutti run -n 2 python3 all_reduce.py
#   torchrun --standalone --nproc-per-node 2 all_reduce.py
#   mpirun -n 2 python3 all_reduce.py
import torch
import tutti

with tutti.Communicator.from_environment() as group:
    device = "cpu" if group.backend == "host" else f"cuda:{group.device}"
    x = torch.full((1 << 20,), group.rank + 1.0, device=device)
    group.all_reduce(x, output=x)  # in place, the sum over all ranks
    print(f"rank {group.rank} of {group.size}: {x[-1].item():g}")
