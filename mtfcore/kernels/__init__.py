"""What each local step computes, in JAX, on one device's part or on whole arrays. First file to read: `basic`."""
