"""Measuring on the TPU or GPU in the room. First file to read: `chip_state`, which tells whether there is one."""
