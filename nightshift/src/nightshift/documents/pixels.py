"""The type of a grey image in memory, apart so that whoever needs it loads no imaging library."""

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
"""(height, width), 0 black to 255 white."""
