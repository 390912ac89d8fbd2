"""Every formula as plain loops in the paper's notation: slow, and plainly right."""

import math

import numpy as np
