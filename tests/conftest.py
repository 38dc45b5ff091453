import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
# tests run side by side, a process for each core: more threads would only wait for one another
torch.set_num_threads(1)
