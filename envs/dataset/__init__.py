"""The dataset file: HDF5 in the flat layout of LeWM and stable-worldmodel."""
